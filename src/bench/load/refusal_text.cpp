// What came from outside stands in results and on terminals, so it is cut and escaped here, once.
#include "bench/load/refusal_text.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cstdint>

namespace muster {
namespace {

using simdjson::dom::element;

constexpr std::size_t kShownMost = 300;  // bytes: a sentence, not a stack trace

std::string_view text_at(const element& json, std::string_view pointer) {
  std::string_view text;
  return json.at_pointer(pointer).get(text) == simdjson::SUCCESS ? text : std::string_view();
}

// FastAPI's validation: where the fault is, as ["body", "input", 0], and what it is.
std::string validation_text(const element& json) {
  const auto message = text_at(json, "/detail/0/msg");
  if (message.empty()) return {};
  std::string place;
  simdjson::dom::array parts;
  if (json.at_pointer("/detail/0/loc").get(parts) == simdjson::SUCCESS) {
    for (const element part : parts) {
      std::string_view name;
      std::int64_t index = 0;
      if (!place.empty()) place += '.';
      if (part.get(name) == simdjson::SUCCESS) {
        place += name;
      } else if (part.get(index) == simdjson::SUCCESS) {
        place += std::to_string(index);
      }
    }
  }
  return place.empty() ? std::string(message) : fmt::format("{}: {}", place, message);
}

std::string said_text(const element& json) {
  for (const auto* pointer : {"/error/message", "/error", "/detail", "/message"}) {
    if (const auto text = text_at(json, pointer); !text.empty()) return std::string(text);
  }
  return validation_text(json);
}

// simdjson has checked the UTF-8; U+0080 to U+009F are C2 80 to C2 9F in it.
std::string one_line(std::string_view text) {
  constexpr unsigned char kDelete = 0x7F;
  constexpr unsigned char kC1Lead = 0xC2;
  constexpr unsigned char kC1Last = 0x9F;
  std::string line;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : kDelete;
    if (byte == kC1Lead && next <= kC1Last && next > kDelete) {
      line += fmt::format("\\x{:02x}", next);
      ++i;
    } else if (byte == '\n' || byte == '\r' || byte == '\t') {
      line += ' ';
    } else if (byte < ' ' || byte == kDelete) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += text[i];
    }
  }
  return line;
}

// Whole characters: a byte 10xxxxxx goes on with one.
std::string cut(std::string text) {
  if (text.size() <= kShownMost) return text;
  auto end = kShownMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text + "…";
}

}  // namespace

std::string refusal_text(std::string_view body) {
  if (body.size() > kRefusalBytesMost) return {};
  simdjson::dom::parser parser;
  element json;
  if (parser.parse(body.data(), body.size()).get(json) != simdjson::SUCCESS) return {};
  return cut(one_line(said_text(json)));
}

}  // namespace muster
