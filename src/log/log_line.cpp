// A line of text or JSON from the same value. Control bytes are escaped: a request must not be able
// to forge a second line.

#include "log/log_line.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::array<std::string_view, 5> kNames{"debug", "info", "warning", "error", "off"};

std::string time_text(std::int64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), unix_ms % 1000);
}

// The text with everything that would break the line, or a terminal, as \xNN.
std::string one_line(std::string_view text) {
  constexpr unsigned char kDelete = 0x7f;
  std::string out;
  while (!text.empty()) {
    const auto bad = invalid_utf8_at(text);
    for (const char c : text.substr(0, bad.value_or(text.size()))) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < ' ' || byte == kDelete) {
        out += fmt::format("\\x{:02x}", byte);
      } else {
        out += c;
      }
    }
    if (!bad) break;
    out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[*bad]));
    text.remove_prefix(*bad + 1);
  }
  return out;
}

}  // namespace

std::string_view log_level_name(LogLevel level) {
  return kNames.at(static_cast<std::size_t>(level));
}

std::optional<LogLevel> parse_log_level(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames.at(i) == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

std::string text_line(const LogLine& line, std::int64_t unix_ms) {
  auto text = fmt::format("{} {:<7} ", time_text(unix_ms), log_level_name(line.level));
  if (!line.device.empty()) text += fmt::format("{} ", one_line(line.device));
  text += one_line(line.message);
  if (!line.request_id.empty()) text += fmt::format(" [request {}]", one_line(line.request_id));
  return text;
}

std::string json_line(const LogLine& line, std::int64_t unix_ms) {
  nlohmann::ordered_json json;
  json["time"] = time_text(unix_ms);
  json["level"] = log_level_name(line.level);
  if (!line.device.empty()) json["device"] = line.device;
  if (!line.request_id.empty()) json["request_id"] = line.request_id;
  json["message"] = line.message;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace muster
