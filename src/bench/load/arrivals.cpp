// An open-loop plan: arrivals do not wait for answers, so a slow server cannot slow its own test. A
// Poisson process of unit rate is drawn and then mapped to time by the inverse of the expected
// count, which gives ramps exactly and without rejection. Arrivals are made one at a time, so a
// long trial needs no list. A trace must ascend, since it is replayed and not sorted.

#include "bench/load/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace muster {

std::string_view arrival_law_name(ArrivalLaw law) {
  switch (law) {
    case ArrivalLaw::Poisson:
      return "poisson";
    case ArrivalLaw::Constant:
      return "constant";
    case ArrivalLaw::Trace:
      return "trace";
  }
  return "";
}

std::optional<double> ArrivalSchedule::next_seconds() {
  if (plan_.law == ArrivalLaw::Trace) {
    if (at_ == plan_.trace.size()) return std::nullopt;
    return plan_.trace[at_++];
  }
  // The first constant arrival is at once, as a user would expect; a Poisson process has no such.
  const bool is_constant = plan_.law == ArrivalLaw::Constant;
  if (!is_constant) expected_ += random_.exponential();
  const double expected = expected_;
  if (is_constant) expected_ += 1;
  if (plan_.ramp_seconds <= 0) return expected / plan_.rate_begin;
  // A run by count may have more requests than its ramp was expected to: chance draws them.
  const double in_ramp = (plan_.rate_begin + plan_.rate_end) / 2 * plan_.ramp_seconds;
  if (expected > in_ramp) return plan_.ramp_seconds + (expected - in_ramp) / plan_.rate_end;
  // expected = begin t + (end - begin) t^2 / (2 T), solved in the form that keeps its digits when
  // both rates are alike.
  const double bend = (plan_.rate_end - plan_.rate_begin) / plan_.ramp_seconds;
  const double square = plan_.rate_begin * plan_.rate_begin + 2 * bend * expected;
  return 2 * expected / (plan_.rate_begin + std::sqrt(std::max(square, 0.0)));
}

std::optional<Duration> ArrivalSchedule::next() {
  const auto at = next_seconds();
  if (!at) return std::nullopt;
  // Thirty years: longer than any run, and far from the end of a Duration, which a rate near 0
  // would pass.
  constexpr double kSecondsMost = 1e9;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(*at, kSecondsMost)));
}

// Every fault names file and line, since traces are usually written by programs.
Result<std::vector<double>> parse_arrival_trace(std::string_view text, std::string_view name,
                                                double seconds_most) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<double> times;
  std::size_t number = 0;
  for (const auto& line : split(text, '\n')) {
    ++number;
    const auto word = trim(std::string_view(line).substr(0, line.find('#')));
    if (word.empty()) continue;
    double at = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), at);
    const bool is_number = parsed.ec == std::errc() && parsed.ptr == word.data() + word.size();
    if (!is_number || !std::isfinite(at) || at < 0) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{}:{}: a trace has a time in seconds on each line, as 0.25: \"{}\"",
                               name, number, excerpt(word))};
    }
    if (at > seconds_most) {
      return Error{
          ErrorKind::InvalidArgument,
          fmt::format("{}:{}: a trace takes at most {} s: {}; --duration ends a longer one", name,
                      number, seconds_most, at)};
    }
    if (!times.empty() && at < times.back()) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{}:{}: the times of a trace ascend: {} comes after {}", name,
                               number, at, times.back())};
    }
    times.push_back(at);
  }
  if (times.empty()) {
    return Error{ErrorKind::InvalidArgument, fmt::format("{}: the trace has no times", name)};
  }
  return times;
}

}  // namespace muster
