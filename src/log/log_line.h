#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

enum class LogLevel : std::uint8_t { Debug, Info, Warning, Error, Off };

/// "debug", "info", "warning", "error", "off".
std::string_view log_level_name(LogLevel level);

/// The inverse of `log_level_name`; nullopt for any other word.
std::optional<LogLevel> parse_log_level(std::string_view name);

/// Something that happened.
struct LogLine {
  LogLevel level = LogLevel::Info;
  std::string_view message = {};
  std::string_view device = {};      // "cuda:0"; empty: about none
  std::string_view request_id = {};  // empty: of no request
};

/// "2026-11-21T13:10:21.123Z warning cuda:0 message [request 8f1c]", without a line end. Control
/// bytes and what is no UTF-8 are shown as \x1b, so that a line is one line.
///
/// unix_ms: milliseconds since 1970. Threads: pure.
std::string text_line(const LogLine& line, std::int64_t unix_ms);

/// The same as a JSON object: time, level, device, request_id, message; those that are empty are
/// left out.
std::string json_line(const LogLine& line, std::int64_t unix_ms);

}  // namespace muster
