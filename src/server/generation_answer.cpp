// A part of a stream is a line of JSON of some 200 bytes around a few bytes of text, some hundred
// times a second and client: it is put together as text, and only what is a text is escaped.

#include "server/generation_answer.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "server/rows_answer.h"

namespace muster {
namespace {

std::string json_text_of(std::string_view text) {
  std::string out;
  append_quoted(text, out);
  return out;
}

std::string usage_json(const GenerationUsage& usage) {
  return fmt::format(
      R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}})",
      usage.prompt_tokens, usage.reply_tokens,
      std::uint64_t{usage.prompt_tokens} + usage.reply_tokens, usage.cached_tokens);
}

}  // namespace

GenerationAnswer::GenerationAnswer(Head head)
    : head_(std::move(head)),
      id_(json_text_of((head_.is_chat ? "chatcmpl-" : "cmpl-") + head_.request_id)) {
  begin_ = fmt::format(R"("created":{},"model":{},"choices":)", head_.created,
                       json_text_of(head_.model));
}

std::string GenerationAnswer::begin_text(std::string_view object) const {
  return fmt::format(R"({{"id":{},"object":"{}",{}[)", id_, object, begin_);
}

std::string GenerationAnswer::whole_begin() const {
  return begin_text(head_.is_chat ? "chat.completion" : "text_completion");
}

// Appended to what is there: a body of many choices may be megabytes long.
void GenerationAnswer::append_choice(const AnswerChoice& choice, FinishReason reason,
                                     std::string& body) const {
  if (body.back() == '}') body += ',';
  fmt::format_to(std::back_inserter(body), R"({{"index":{},)", choice.index);
  body += head_.is_chat ? R"("message":{"role":"assistant","content":)" : R"("text":)";
  append_quoted(choice.text, body);
  if (head_.is_chat) body += R"(,"refusal":null})";
  body.append(R"(,"logprobs":)").append(choice.logprobs);
  fmt::format_to(std::back_inserter(body), R"(,"finish_reason":"{}"}})",
                 finish_reason_name(reason));
}

std::string GenerationAnswer::whole_end(const GenerationUsage& usage) {
  return fmt::format(R"(],"usage":{}}})", usage_json(usage));
}

// With usage asked for, every part but the last says that it has none yet.
std::string GenerationAnswer::event(std::string_view choices, std::string_view usage) const {
  return fmt::format("data: {}{}]{}{}}}\n\n",
                     begin_text(head_.is_chat ? "chat.completion.chunk" : "text_completion"),
                     choices, head_.includes_usage ? ",\"usage\":" : "",
                     head_.includes_usage ? usage : std::string_view());
}

std::string GenerationAnswer::choice_event(const AnswerChoice& choice, std::string_view part,
                                           std::string_view finish_reason) const {
  return event(fmt::format(R"({{"index":{},{},"logprobs":{},"finish_reason":{}}})", choice.index,
                           part, choice.logprobs, finish_reason),
               "null");
}

std::string GenerationAnswer::first_events(std::uint32_t choice_count) const {
  std::string text;
  if (!head_.is_chat) return text;
  for (std::uint32_t i = 0; i < choice_count; ++i) {
    text += choice_event({.index = i}, R"("delta":{"role":"assistant","content":""})", "null");
  }
  return text;
}

std::string GenerationAnswer::text_event(const AnswerChoice& choice) const {
  const auto content = json_text_of(choice.text);
  return choice_event(choice,
                      head_.is_chat ? fmt::format(R"("delta":{{"content":{}}})", content)
                                    : fmt::format(R"("text":{})", content),
                      "null");
}

std::string GenerationAnswer::finish_event(std::uint32_t index, FinishReason reason) const {
  return choice_event({.index = index}, head_.is_chat ? R"("delta":{})" : R"("text":"")",
                      fmt::format(R"("{}")", finish_reason_name(reason)));
}

std::string GenerationAnswer::last_events(const GenerationUsage& usage) const {
  return (head_.includes_usage ? event("", usage_json(usage)) : std::string()) + "data: [DONE]\n\n";
}

std::string GenerationAnswer::error_events(const ApiError& error) {
  return "data: " + error_response(error).body + "\n\ndata: [DONE]\n\n";
}

}  // namespace muster
