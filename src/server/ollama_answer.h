#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "server/api_error.h"
#include "serving/generation_call.h"

namespace muster {

/// What the end of a reply tells.
struct OllamaEnd {
  FinishReason reason = FinishReason::Stop;
  GenerationUsage usage = {};
  Duration total = {};                      // since the request was whole
  std::optional<Duration> reply_time = {};  // since its first token; nullopt: there was none
};

/// The answer to a request for a reply as Ollama gives it: lines of JSON, or the last of them alone
/// with all of the text.
///
/// `load_duration` is 0, for no call waits for a model to be loaded. `prompt_eval_duration` is not
/// told: when a worker began with a prompt is not measured, and clients divide by it.
///
/// Pure. Source: ollama, docs/api.md, "Generate a completion", "Generate a chat completion";
/// api/types.go (GenerateResponse, ChatResponse, Metrics, whose figures may all be absent).
class OllamaAnswer {
 public:
  /// model: as the client has it.
  OllamaAnswer(std::string_view model, bool is_chat);

  // Each at its time, in seconds since 1970.

  /// What is new of a reply: a line of a stream.
  std::string line(std::string_view text, double unix_seconds) const;
  /// The end of a stream, without its line break, or a whole answer.
  std::string last(std::string_view text, const OllamaEnd& end, double unix_seconds) const;
  /// To a request without a prompt, which asks for the model to be loaded.
  std::string loaded(double unix_seconds) const;

  /// Instead of the last line, where a reply could not be brought to its end.
  static std::string error_line(const ApiError& error);

 private:
  std::string begin(std::string_view text, double unix_seconds) const;

  std::string begin_;  // of every line, up to its time
  const bool is_chat_;
};

}  // namespace muster
