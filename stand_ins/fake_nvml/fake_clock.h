#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "fake_nvml/scenario.h"

namespace muster::fake_nvml {

/// The time of the scenario, in nanoseconds since the driver was loaded.
///
/// Threads: thread-safe.
class FakeClock {
 public:
  /// Errors: InvalidArgument, NotFound: the clock's file cannot be opened or made.
  static Result<FakeClock> make(const Scenario& scenario);

  FakeClock(FakeClock&& other) noexcept;
  FakeClock& operator=(FakeClock&& other) = delete;
  ~FakeClock();

  std::int64_t now_ns() const;
  /// Microseconds since 1970, as the driver stamps values; a stepped clock's time 0 is 2023-11-14.
  std::int64_t wall_us() const;
  bool is_stepped() const { return stepped_ != nullptr; }
  void set_ns(std::int64_t now_ns) const;
  void advance_ns(std::int64_t by_ns) const;

 private:
  FakeClock() = default;

  std::int64_t start_ns_ = 0;                     // of the machine's monotonic clock
  std::atomic<std::int64_t>* stepped_ = nullptr;  // the program's own, or the mapped file
  bool is_mapped_ = false;
};

/// The time that a stepped clock without a file has, also before the driver is loaded.
std::atomic<std::int64_t>& own_stepped_time();

}  // namespace muster::fake_nvml
