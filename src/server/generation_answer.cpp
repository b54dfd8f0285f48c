// A part of a stream is a line of JSON of some 200 bytes around a few bytes of text, some hundred
// times a second and client: it is put together as text, and only what is a text is escaped.

#include "server/generation_answer.h"

#include <fmt/format.h>

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

std::string GenerationAnswer::whole(std::string_view text, FinishReason reason,
                                    const GenerationUsage& usage) const {
  const auto content = json_text_of(text);
  const auto choice =
      head_.is_chat
          ? fmt::format(R"("message":{{"role":"assistant","content":{},"refusal":null}})", content)
          : fmt::format(R"("text":{})", content);
  return fmt::format(
      R"({{"id":{},"object":"{}",{}[{{"index":0,{},"logprobs":null,"finish_reason":"{}"}}],"usage":{}}})",
      id_, head_.is_chat ? "chat.completion" : "text_completion", begin_, choice,
      finish_reason_name(reason), usage_json(usage));
}

// With usage asked for, every part but the last says that it has none yet.
std::string GenerationAnswer::event(std::string_view choices, std::string_view usage) const {
  return fmt::format("data: {{\"id\":{},\"object\":\"{}\",{}[{}]{}{}}}\n\n", id_,
                     head_.is_chat ? "chat.completion.chunk" : "text_completion", begin_, choices,
                     head_.includes_usage ? ",\"usage\":" : "",
                     head_.includes_usage ? usage : std::string_view());
}

std::string GenerationAnswer::first_event() const {
  if (!head_.is_chat) return {};
  return event(
      R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})",
      "null");
}

std::string GenerationAnswer::text_event(std::string_view text) const {
  const auto content = json_text_of(text);
  const auto part = head_.is_chat ? fmt::format(R"("delta":{{"content":{}}})", content)
                                  : fmt::format(R"("text":{})", content);
  return event(fmt::format(R"({{"index":0,{},"logprobs":null,"finish_reason":null}})", part),
               "null");
}

std::string GenerationAnswer::last_events(FinishReason reason, const GenerationUsage& usage) const {
  auto text = event(
      fmt::format(R"({{"index":0,{},"logprobs":null,"finish_reason":"{}"}})",
                  head_.is_chat ? R"("delta":{})" : R"("text":"")", finish_reason_name(reason)),
      "null");
  if (head_.includes_usage) text += event("", usage_json(usage));
  return text + "data: [DONE]\n\n";
}

std::string GenerationAnswer::error_events(const ApiError& error) {
  return "data: " + error_response(error).body + "\n\ndata: [DONE]\n\n";
}

}  // namespace muster
