// Stages that a server reports of itself, to set beside what the client has measured. The standard
// header goes before TEI's own. A value that is no number is skipped rather than an error, since a
// header must not spoil a trial, and the number of stages is bounded because each becomes a column.
// Source: W3C, Server Timing; text-embeddings-inference, router/src/http/server.rs.

#include "bench/load/server_timing.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace muster {
namespace {

constexpr double kMillisecond = 1e-3;
constexpr std::size_t kStagesMost = 16;  // of one answer; each becomes a column of the result

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
  if (!std::isfinite(value) || value < 0) return std::nullopt;
  return value * kMillisecond;
}

// "queue;desc="waits";dur=1.5"
std::optional<std::pair<std::string, double>> read_metric(std::string_view text) {
  std::optional<double> duration;
  const auto parts = split(text, ';');
  const auto name = trim(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto parameter = trim(parts[i]);
    constexpr std::string_view kDuration = "dur=";
    if (parameter.starts_with(kDuration)) {
      duration = milliseconds_in(parameter.substr(kDuration.size()));
    }
  }
  if (name.empty() || !duration) return std::nullopt;
  return std::pair(std::string(name), *duration);
}

}  // namespace

// Only one of both sources is read, or a server that sends both would have its stages counted
// twice.
std::vector<std::pair<std::string, double>> server_stages(const HttpHeaders& headers) {
  std::vector<std::pair<std::string, double>> stages;
  if (const auto timing = find_header(headers, "server-timing")) {
    for (const auto& text : split(*timing, ',')) {
      if (stages.size() == kStagesMost) break;
      if (auto metric = read_metric(text)) stages.push_back(std::move(*metric));
    }
    return stages;
  }
  for (const auto& tei : kTeiHeaders) {
    const auto value = find_header(headers, tei.header);
    const auto duration = value ? milliseconds_in(*value) : std::nullopt;
    if (duration) stages.emplace_back(tei.stage, *duration);
  }
  return stages;
}

}  // namespace muster
