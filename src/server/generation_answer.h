#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/api_error.h"
#include "serving/generation_call.h"

namespace muster {

/// The answer to one request for a reply, whole or as parts of a stream of server-sent events.
///
/// Pure. Source: OpenAI, API reference, "The chat completion object", "The chat completion chunk
/// object", "The completion object"; WHATWG, HTML, section 9.2.
class GenerationAnswer {
 public:
  struct Head {
    std::string request_id = {};  // the answer's id is made of it
    std::string model = {};
    std::int64_t created = 0;  // Unix time
    bool is_chat = false;
    bool includes_usage = false;
  };
  explicit GenerationAnswer(Head head);

  /// The body of an answer that is not streamed.
  std::string whole(std::string_view text, FinishReason reason, const GenerationUsage& usage) const;

  /// What a stream begins with: of a chat, who speaks; else nothing.
  std::string first_event() const;
  std::string text_event(std::string_view text) const;
  /// The end of a stream: why, the usage where it is asked for, and "[DONE]".
  std::string last_events(FinishReason reason, const GenerationUsage& usage) const;
  /// Instead of that, where the reply could not be brought to its end.
  static std::string error_events(const ApiError& error);

 private:
  std::string event(std::string_view choices, std::string_view usage) const;

  const Head head_;
  const std::string id_;  // in quotes
  std::string begin_;     // of every object, up to its choices
};

}  // namespace muster
