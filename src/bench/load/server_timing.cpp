// Stages that a server reports of itself, to set beside what the client has measured. The standard
// header goes before TEI's own. A value that is no number is counted and left out rather than an
// error, since a header must not spoil a trial, and the number of stages is bounded because each
// becomes a column.
// Source: W3C, Server Timing; text-embeddings-inference, router/src/http/server.rs; RFC 9110,
// section 5.6.4 (quoted strings) and 5.3 (a field that comes several times is one list).

#include "bench/load/server_timing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace muster {
namespace {

constexpr double kMillisecond = 1e-3;
constexpr double kMillisecondsMost = 1e12;  // thirty years; a sum of these is still a time
constexpr std::size_t kStagesMost = 16;     // of one answer; each becomes a column of the result

struct TeiHeader {
  std::string_view header;
  std::string_view stage;
};
constexpr std::array kTeiHeaders{TeiHeader{"x-tokenization-time", "tokenization"},
                                 TeiHeader{"x-queue-time", "queue"},
                                 TeiHeader{"x-inference-time", "inference"}};

std::optional<double> milliseconds_in(std::string_view text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  const bool is_time = value >= 0 && value <= kMillisecondsMost;  // not so for "nan"
  if (!is_time) return std::nullopt;
  return value * kMillisecond;
}

// The pieces between separators; one within a quoted string is none.
std::vector<std::string_view> split_unquoted(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  bool is_quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (is_quoted && text[at] == '\\') {
      ++at;  // it stands for the character behind it
    } else if (text[at] == '"') {
      is_quoted = !is_quoted;
    } else if (text[at] == separator && !is_quoted) {
      pieces.push_back(text.substr(begin, at - begin));
      begin = at + 1;
    }
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

std::string_view without_quotes(std::string_view text) {
  const bool is_quoted = text.size() >= 2 && text.starts_with('"') && text.ends_with('"');
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

// Letters of either case are alike in names of fields and of parameters. lower: in lower case.
bool is_named(std::string_view name, std::string_view lower) {
  return std::ranges::equal(name, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

void keep_stage(std::string_view name, std::string_view milliseconds, ServerStages& found) {
  const auto duration = milliseconds_in(milliseconds);
  if (name.empty() || !duration || found.stages.size() == kStagesMost) {
    ++found.left_out;
  } else {
    found.stages.emplace_back(name, *duration);
  }
}

// "queue;desc="waits";dur=1.5"
void read_metric(std::string_view text, ServerStages& found) {
  const auto parts = split_unquoted(text, ';');
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto equals = std::min(parts[i].find('='), parts[i].size());
    if (!is_named(trim(parts[i].substr(0, equals)), "dur")) continue;
    const auto value = parts[i].substr(std::min(equals + 1, parts[i].size()));
    return keep_stage(trim(parts.front()), without_quotes(trim(value)), found);
  }
}

}  // namespace

// Only one of both sources is read, or a server that sends both would have its stages counted
// twice.
ServerStages server_stages(const HttpHeaders& headers) {
  ServerStages found;
  bool has_timing = false;
  for (const auto& header : headers) {
    if (!is_named(header.first, "server-timing")) continue;
    has_timing = true;
    for (const auto text : split_unquoted(header.second, ',')) read_metric(text, found);
  }
  if (has_timing) return found;
  for (const auto& tei : kTeiHeaders) {
    const auto value = find_header(headers, tei.header);
    if (value) keep_stage(tei.stage, trim(*value), found);
  }
  return found;
}

}  // namespace muster
