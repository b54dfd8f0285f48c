#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/api_error.h"
#include "server/call_fields.h"
#include "server/rows_answer.h"
#include "serving/inference_service.h"

namespace muster {

// The bodies of Ollama's API for vectors and models, and its answers. `keep_alive` and `options`
// are read and change nothing: a model is served until it is unloaded, and its limits are its own.
// ":latest" behind a model's name is left off.
//
// Errors: 400. Threads: pure.
// Source: ollama, api/types.go and server/routes.go; ollama-python, _types.py.

/// A body of POST /api/embed, or of POST /api/embeddings.
struct OllamaEmbedRequest {
  EmbedCall call;          // no texts: there is nothing to embed, which is no error
  std::string model_name;  // as the client has it, for the answer
};

/// Reads `model`, `input` (a text or a list of them), `truncate`, `dimensions` (0: all).
ApiResult<OllamaEmbedRequest> parse_ollama_embed(std::string body, const TextListLimits& limits,
                                                 Duration deadline_most);

/// Reads `model` and `prompt`.
ApiResult<OllamaEmbedRequest> parse_ollama_embeddings(std::string body,
                                                      const TextListLimits& limits,
                                                      Duration deadline_most);

/// `{"model","embeddings":[[…],…],"total_duration","load_duration":0,"prompt_eval_count"}`.
///
/// total: since the request was whole, in nanoseconds there. load_duration is 0, for no call waits
/// for a model to be loaded.
RowSection ollama_section(const std::string& model_name, std::uint64_t token_count, Duration total);

/// `{"embedding":[…]}`.
RowSection ollama_old_section();

/// The model that a body of POST /api/show names: `model`, or `name` as old clients call it.
ApiResult<std::string> parse_ollama_show(std::string body);

/// A model's name without the tag that Ollama adds to one that has none.
std::string without_latest(std::string name);

/// "2026-11-23T22:52:35Z". Source: RFC 3339, as Go's time.Time is written in JSON.
std::string ollama_time(double unix_seconds);

}  // namespace muster
