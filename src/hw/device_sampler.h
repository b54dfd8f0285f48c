#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "spec/telemetry.h"

namespace muster {

/// Told of every driver call before and after it, so that a call that never returns, or kills the
/// process, has a name. The arguments live as long as the program.
///
/// Threads: the methods of one watch are called by one thread.
class CallWatch {
 public:
  virtual ~CallWatch() = default;

  virtual void enter(const char* function, TimePoint at) = 0;
  virtual void leave(const char* function, std::int32_t code, Duration took) = 0;
};

/// A watch that looks away, for calls that nobody accounts for.
class NoWatch final : public CallWatch {
 public:
  void enter(const char* /*function*/, TimePoint /*at*/) override {}
  void leave(const char* /*function*/, std::int32_t /*code*/, Duration /*took*/) override {}
};

/// Reads one device through its driver.
///
/// Threads: calls for one device come from one thread at a time; different devices may be read by
/// different threads at once.
class DeviceSampler {
 public:
  virtual ~DeviceSampler() = default;

  virtual const DeviceIdentity& identity() const = 0;

  /// Takes the readings of every tier in `due` into `sample.readings`, and the fields beside them
  /// except `device`, `at` and `tiers`, which the caller has set before: rates over the time
  /// between two visits go by `at`. Lists processes with the slow tier. What the device does
  /// not offer stays unset and is no error; what fails is unset and listed. Blocks as long as the
  /// driver does.
  virtual void sample(TierSet due, CallWatch& watch, DeviceSample& sample) = 0;

  /// The energy counter alone, in one call: joules. nullopt: there is none, or it failed.
  virtual std::optional<double> energy_joules(CallWatch& watch) = 0;
};

/// What the driver reports by itself.
///
/// Threads: one thread waits; `stop` may be called by another.
class DeviceEventSource {
 public:
  virtual ~DeviceEventSource() = default;

  /// Blocks until something happened or `time` is over; may give nothing.
  ///
  /// Errors: Unavailable when the driver is gone.
  virtual Result<std::vector<DeviceEvent>> wait(Duration time) = 0;
};

/// What one driver offers. The library stays loaded as long as `keep_alive` lives.
struct DeviceSource {
  std::vector<std::unique_ptr<DeviceSampler>> samplers;  // in PCI order, slices after their GPU
  std::unique_ptr<DeviceEventSource> events;             // nullptr: there are none
  LinkMatrix links;                                      // among the samplers that are no slices
  std::shared_ptr<void> keep_alive;                      // waits for calls that have not returned
};

}  // namespace muster
