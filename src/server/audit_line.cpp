// The line is built by hand, since there is one for every request; the JSON library is called only
// for a text that needs escapes. What comes from outside is cut before it is escaped, and a
// character that the cut breaks becomes U+FFFD. The result is ASCII without line breaks, so one
// line is always one entry. Empty texts and unknown counts are left out.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "server/audit_log.h"

namespace muster {
namespace {

constexpr std::size_t kTextSizeMost = 256;

// Source: RFC 3339, section 5.6; UTC, milliseconds.
void append_time(std::string& line, double unix_seconds) {
  using namespace std::chrono;
  const sys_time<milliseconds> time{milliseconds(std::llround(unix_seconds * 1e3))};
  const auto midnight = floor<days>(time);
  const year_month_day date(midnight);
  const hh_mm_ss clock(time - midnight);
  fmt::format_to(std::back_inserter(line), "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                 static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                 static_cast<unsigned>(date.day()), clock.hours().count(), clock.minutes().count(),
                 clock.seconds().count(), clock.subseconds().count());
}

// What needs no escape in JSON and is ASCII: nearly every text, which then is copied as it is.
bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

void append_text(std::string& line, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  text = text.substr(0, kTextSizeMost);
  line += fmt::format(",\"{}\":", name);
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    line += '"';
    line += text;
    line += '"';
    return;
  }
  using Json = nlohmann::json;
  line += Json(std::string(text)).dump(-1, ' ', true, Json::error_handler_t::replace);
}

void append_count(std::string& line, std::string_view name, std::optional<std::uint64_t> count) {
  if (count) fmt::format_to(std::back_inserter(line), ",\"{}\":{}", name, *count);
}

}  // namespace

std::string audit_line(const AuditEntry& entry, std::uint64_t dropped_count) {
  std::string line = "{\"time\":\"";
  append_time(line, entry.unix_seconds);
  line += '"';
  append_text(line, "request_id", entry.request_id);
  append_text(line, "key", entry.key_name);
  append_text(line, "client", entry.client_name);
  append_text(line, "peer", entry.peer);
  append_text(line, "method", entry.method);
  append_text(line, "path", entry.path);
  append_text(line, "model", entry.model);
  append_count(line, "texts", entry.text_count);
  append_count(line, "tokens", entry.token_count);
  fmt::format_to(std::back_inserter(line),
                 ",\"status\":{},\"ms\":{:.3f},\"bytes_in\":{},\"bytes_out\":{}", entry.status,
                 entry.milliseconds, entry.bytes_in, entry.bytes_out);
  append_text(line, "reason", entry.reason);
  if (dropped_count > 0) append_count(line, "dropped_before", dropped_count);
  line += "}\n";
  return line;
}

}  // namespace muster
