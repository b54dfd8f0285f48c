#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/api_error.h"
#include "serving/generation_call.h"

namespace muster {

/// One of the replies of an answer, or what is new of it. Lives for the call that it is given to.
struct AnswerChoice {
  std::uint32_t index = 0;
  std::string_view text = {};
  std::string_view logprobs = "null";  // as LogprobsJson writes them
};

/// The answer to one request for replies, whole or as parts of a stream of server-sent events.
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

  /// The body of an answer that is not streamed: its choices one by one, then the end.
  std::string whole_begin() const;
  void append_choice(const AnswerChoice& choice, FinishReason reason, std::string& body) const;
  static std::string whole_end(const GenerationUsage& usage);

  /// What a stream begins with: of a chat, who speaks in each of its choices; else nothing.
  std::string first_events(std::uint32_t choice_count) const;
  std::string text_event(const AnswerChoice& choice) const;
  /// The end of a choice, and why.
  std::string finish_event(std::uint32_t index, FinishReason reason) const;
  /// The end of a stream: the usage where it is asked for, and "[DONE]".
  std::string last_events(const GenerationUsage& usage) const;
  /// Instead of that, where a reply could not be brought to its end.
  static std::string error_events(const ApiError& error);

 private:
  std::string begin_text(std::string_view object) const;
  std::string choice_event(const AnswerChoice& choice, std::string_view part,
                           std::string_view finish_reason) const;
  std::string event(std::string_view choices, std::string_view usage) const;

  const Head head_;
  const std::string id_;  // in quotes
  std::string begin_;     // of every object, up to its choices
};

}  // namespace muster
