#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/call_fields.h"
#include "server/tokens_answer.h"
#include "serving/inference_service.h"

namespace muster {

/// A body of POST /v1/tokenize.
struct TokenizeRequest {
  CallOptions options;
  std::optional<std::string> prompt_name;
  std::vector<std::string> texts;
};

/// Reads `input` or `inputs` (TEI's name): a text or a list of texts; `model`, `prompt_name` and
/// the fields of `add_call_fields`. The model may be left out.
///
/// Errors: 400. Threads: pure.
ApiResult<TokenizeRequest> parse_tokenize(std::string body, const TextListLimits& limits,
                                          Duration deadline_most);

/// `{"object": "list", "data": [{"object": "tokens", "index", "ids", "count", "truncated"}],
/// "model", "usage"}`: the ids that a vector is computed from, prompt and special tokens included.
///
/// token_count: of all texts.
TokensForm tokenize_form(const std::string& model, std::size_t token_count);

}  // namespace muster
