#pragma once

#include <chrono>

namespace muster {

using Duration = std::chrono::nanoseconds;

/// A point on the monotonic clock of this machine; the zero point has no meaning.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// Where time comes from. Passed in, so that tests move it by hand; only `cli/` makes the real one.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Threads: thread-safe.
  virtual TimePoint now() const = 0;
};

/// CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

/// Seconds as a floating number, for rates and reports.
inline double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace muster
