#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "bench/statistics/random_stream.h"

namespace muster {

enum class ArrivalLaw : std::uint8_t { Poisson, Constant, Trace };

/// "poisson", "constant", "trace". Threads: pure.
std::string_view arrival_law_name(ArrivalLaw law);

/// When requests of an open loop are meant to be sent, answers or none.
struct ArrivalPlan {
  ArrivalLaw law = ArrivalLaw::Poisson;
  double rate_begin = 0;           // requests a second; of a trace unused
  double rate_end = 0;             // of a ramp: reached at `ramp_seconds`, and kept behind it
  double ramp_seconds = 0;         // 0: no ramp
  std::vector<double> trace = {};  // seconds from the start, ascending
};

/// The times of a plan, one after the other. The same seed gives the same times; gaps are not
/// scaled so that the last fits, as that would take the variation out of a Poisson process.
///
/// A rate that changes is made by inverting its integral: the k-th arrival is where the integral is
/// k (constant), or the sum of k exponential numbers (Poisson).
/// Source: Cinlar 1975, "Introduction to Stochastic Processes", section 4.7 (inversion).
/// Threads: not thread-safe.
class ArrivalSchedule {
 public:
  ArrivalSchedule(const ArrivalPlan& plan, std::uint64_t seed) : plan_(plan), random_(seed) {}

  /// From the start of the run; nullopt at the end of a trace.
  std::optional<Duration> next();

 private:
  std::optional<double> next_seconds();

  const ArrivalPlan plan_;
  RandomStream random_;
  double expected_ = 0;  // arrivals that the integral of the rate has seen
  std::size_t at_ = 0;   // in the trace
};

/// As long as a trial may be told to take (interval.h).
inline constexpr double kTraceSecondsMost = 3600;

/// A recorded trace: one time a line, in seconds from its start, ascending; blank lines, what
/// follows '#' and a byte order mark are passed over.
///
/// name: for messages. seconds_most: no time is later; infinity where the trial ends by itself.
/// Errors: InvalidArgument, with the line. Threads: pure.
Result<std::vector<double>> parse_arrival_trace(std::string_view text, std::string_view name,
                                                double seconds_most = kTraceSecondsMost);

}  // namespace muster
