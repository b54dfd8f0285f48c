#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "spec/telemetry.h"
#include "telemetry/call_page.h"
#include "telemetry/device_history.h"
#include "wire/telemetry_messages.h"

namespace muster {

/// What a collector knows: the newest readings of each device, its history, what went wrong.
///
/// Not thread-safe; owned by a collector, under its lock. Time comes in as an argument.
class TelemetryState {
 public:
  struct Options {
    std::array<Duration, kTierCount> periods;
    Duration history;
  };
  /// The call that a device is in, if it is in one.
  using CallOf = std::function<std::optional<CallInProgress>(std::uint32_t device)>;

  TelemetryState(WatchedMachine machine, const Options& options);

  const WatchedMachine& machine() const { return machine_; }

  /// Device numbers are those of `machine()`.
  void add(const DeviceSample& sample);
  void add(const DeviceEvent& event, double unix_seconds);
  void set_costs(SamplerCosts costs) { costs_ = std::move(costs); }

  void sampler_started(std::uint32_t pid);
  /// Costs of the next sampler count from zero, and are added to these.
  void sampler_died();
  /// After a restart: the driver lists this device, or does not any more.
  void set_listed(std::uint32_t device, bool is_listed);
  /// It is not watched any more; the reason is what is said of it.
  void leave_out(std::uint32_t device, std::string reason);

  /// Every device was visited, or is in a call for too long, or is left out.
  bool is_complete(TimePoint now, const CallOf& call_of) const;

  TelemetrySnapshot snapshot(TimePoint now, double unix_seconds, const CallOf& call_of) const;
  std::vector<HistoryPoint> history(std::uint32_t device, Reading reading, TimePoint since) const;

 private:
  struct Known {
    explicit Known(DeviceHistory kept) : history(std::move(kept)) {}

    Readings readings;
    std::array<std::optional<TimePoint>, kTierCount> taken;
    std::optional<TimePoint> last_success;
    std::optional<std::string> lost_reason;
    std::string left_out_reason;
    bool is_listed = true;
    std::vector<GpuProcess> processes;
    std::optional<TimePoint> processes_taken;
    std::vector<float> core_loads;
    std::map<std::uint32_t, XidCount> xids;
    std::map<std::int32_t, std::uint64_t> error_counts;
    DeviceHistory history;
  };

  DeviceStatus status_of(std::uint32_t device, TimePoint now, double unix_seconds,
                         const CallOf& call_of) const;
  std::string down_reason(std::uint32_t device, TimePoint now, const CallOf& call_of) const;
  Duration silence_limit(std::uint32_t device) const;
  void take_fresh(const Known& known, TimePoint now, DeviceStatus& status) const;
  CollectorStatus collector_status() const;

  WatchedMachine machine_;
  Options options_;
  std::vector<std::string> names_;
  std::vector<Known> devices_;
  std::uint32_t expected_gpus_ = 0;
  SamplerCosts costs_;  // of this sampler
  SamplerCosts past_;   // of those before it
  std::uint32_t start_count_ = 0;
  std::optional<std::uint32_t> sampler_pid_;
};

}  // namespace muster
