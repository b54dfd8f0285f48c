// A line of a stream is some 100 bytes of JSON around a few bytes of text: it is put together as
// text, and only what is a text is escaped.

#include "server/ollama_answer.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>

#include "server/ollama_api.h"
#include "server/rows_answer.h"

namespace muster {
namespace {

std::int64_t nanoseconds(Duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

OllamaAnswer::OllamaAnswer(std::string_view model, bool is_chat) : is_chat_(is_chat) {
  begin_ = R"({"model":)";
  append_quoted(model, begin_);
  begin_ += R"(,"created_at":")";
}

std::string OllamaAnswer::begin(std::string_view text, double unix_seconds) const {
  std::string out = begin_ + ollama_time(unix_seconds);
  out += is_chat_ ? R"(","message":{"role":"assistant","content":)" : R"(","response":)";
  append_quoted(text, out);
  if (is_chat_) out += '}';
  return out;
}

std::string OllamaAnswer::line(std::string_view text, double unix_seconds) const {
  return begin(text, unix_seconds) + ",\"done\":false}\n";
}

std::string OllamaAnswer::last(std::string_view text, const OllamaEnd& end,
                               double unix_seconds) const {
  auto out = begin(text, unix_seconds) +
             fmt::format(R"(,"done":true,"done_reason":"{}","total_duration":{},)"
                         R"("load_duration":0,"prompt_eval_count":{},"eval_count":{})",
                         finish_reason_name(end.reason), nanoseconds(end.total),
                         end.usage.prompt_tokens, end.usage.reply_tokens);
  if (end.reply_time) out += fmt::format(R"(,"eval_duration":{})", nanoseconds(*end.reply_time));
  return out + '}';
}

std::string OllamaAnswer::loaded(double unix_seconds) const {
  return begin("", unix_seconds) + R"(,"done":true,"done_reason":"load"})";
}

std::string OllamaAnswer::error_line(const ApiError& error) {
  return error_response(error, ErrorForm::Ollama).body + '\n';
}

}  // namespace muster
