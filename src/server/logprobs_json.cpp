// Log-probabilities are put together as text, token by token: an object for each would take several
// times the memory, and a whole reply may have many thousands.

#include "server/logprobs_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "server/float_text.h"
#include "server/rows_answer.h"

namespace muster {
namespace {

// What stands for a probability of zero, whose logarithm JSON cannot write.
// Source: OpenAI, API reference, "The chat completion object", `logprob`.
constexpr float kLogprobLeast = -9999;

void append_logprob(std::optional<float> logprob, std::string& out) {
  if (!logprob) {
    out += "null";
    return;
  }
  const float shown = std::max(*logprob, kLogprobLeast);
  append_floats(std::span(&shown, 1), out);
}

// Printable ASCII as it is, every other byte as \x and two digits.
std::string escaped(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (c == '\\') {
      text += "\\\\";
    } else if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

// Before what a token is shown as in the lists where that is no text.
constexpr std::string_view kMark = "bytes:";

// `mark` stands before the bytes of a token that is no text by itself.
std::string text_of(const ShownToken& token, std::string_view mark) {
  if (!invalid_utf8_at(token.bytes)) return token.bytes;
  return std::string(mark) + escaped(token.bytes);
}

void append_comma(std::string& list) {
  if (!list.empty()) list += ',';
}

// Without the brace at its end, for `top_logprobs`.
void append_object(const ShownToken& token, std::string& out) {
  out += R"({"token":)";
  append_quoted(text_of(token, ""), out);
  out += R"(,"logprob":)";
  append_logprob(token.logprob, out);
  out += R"(,"bytes":)";
  if (!token.is_text) {
    out += "null";
    return;
  }
  out += '[';
  for (std::size_t i = 0; i < token.bytes.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{}", i > 0 ? "," : "",
                   static_cast<unsigned char>(token.bytes[i]));
  }
  out += ']';
}

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

void LogprobsJson::add(const ReplyToken& token) {
  append_comma(chosen_);
  if (!is_chat_) return add_to_lists(token);
  append_object(token.chosen, chosen_);
  chosen_ += R"(,"top_logprobs":[)";
  for (std::size_t i = 0; i < token.top.size(); ++i) {
    if (i > 0) chosen_ += ',';
    append_object(token.top[i], chosen_);
    chosen_ += '}';
  }
  chosen_ += "]}";
}

void LogprobsJson::add_to_lists(const ReplyToken& token) {
  const auto& chosen = token.chosen;
  append_quoted(text_of(chosen, kMark), chosen_);
  append_comma(logprobs_);
  append_logprob(chosen.logprob, logprobs_);
  append_comma(top_);
  append_top(token);
  const auto& bytes = chosen.bytes;
  const bool is_within =
      chosen.is_text && characters_ > 0 && !bytes.empty() && continues_character(bytes[0]);
  append_comma(offsets_);
  offsets_ += std::to_string(characters_ - (is_within ? 1 : 0));
  if (!chosen.is_text && !chosen.is_echoed) return;
  for (const char byte : bytes) characters_ += continues_character(byte) ? 0 : 1;
}

// It has the chosen token too, so that it may have one more than was asked for. Of tokens with one
// text the likeliest is shown: an object has a name once.
void LogprobsJson::append_top(const ReplyToken& token) {
  if (!token.chosen.logprob) {
    top_ += "null";
    return;
  }
  top_ += '{';
  std::vector<std::string> names;
  const auto add_name = [&](const ShownToken& shown) {
    auto name = text_of(shown, kMark);
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    if (!names.empty()) top_ += ',';
    append_quoted(name, top_);
    top_ += ':';
    append_logprob(shown.logprob, top_);
    names.push_back(std::move(name));
  };
  for (const auto& other : token.top) add_name(other);
  add_name(token.chosen);
  top_ += '}';
}

std::string LogprobsJson::take() {
  if (is_chat_) {
    return fmt::format(R"({{"content":[{}],"refusal":null}})", std::exchange(chosen_, {}));
  }
  return fmt::format(
      R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[{}]}})",
      std::exchange(chosen_, {}), std::exchange(logprobs_, {}), std::exchange(top_, {}),
      std::exchange(offsets_, {}));
}

}  // namespace muster
