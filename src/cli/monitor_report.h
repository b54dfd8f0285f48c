#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cli/monitor_child.h"
#include "telemetry/collector.h"
#include "telemetry/energy_window.h"
#include "telemetry/statistics.h"
#include "terminal/terminal_info.h"

namespace muster {

/// What a command took, and what the devices did while it ran.
struct CommandUse {
  struct OfDevice {
    DeviceIdentity identity;
    std::string name;
    DeviceUse use;
    WindowEnergy energy;
    std::optional<TimePoint> counted_to = {};  // the last sample
  };
  double wall_seconds = 0;
  std::optional<ProcessUse> own;  // the command's; what devices did is everybody's
  std::vector<OfDevice> devices;
};

/// Measures from its making to `finish`: every sample between counts, CPUs are visited at both
/// ends, and the energy is that between edges of the counters at both ends.
///
/// Threads: `add` is called by the collector's thread, the rest by one thread.
class CommandMeter {
 public:
  /// Waits for the first edges. Errors: Unavailable, DeadlineExceeded (the sampler).
  static Result<std::shared_ptr<CommandMeter>> start(Collector& collector, const Clock& clock);

  /// A process of somebody else is on the device.
  void set_shared(std::uint32_t device);

  /// Ends the window now and waits for its last edges.
  CommandUse finish(Collector& collector);

 private:
  CommandMeter(const Collector& collector, const Clock& clock,
               const std::vector<EnergyEdge>& edges);
  void add(const DeviceSample& sample);
  bool counts(const DeviceSample& sample) const MUSTER_REQUIRES(mutex_);

  const Clock& clock_;
  const TimePoint begin_;
  Mutex mutex_;
  bool is_over_ MUSTER_GUARDED_BY(mutex_) = false;
  // Set while the last edges are sought.
  std::optional<TimePoint> end_ MUSTER_GUARDED_BY(mutex_);
  CommandUse use_ MUSTER_GUARDED_BY(mutex_);
  std::vector<EnergyWindow> windows_ MUSTER_GUARDED_BY(mutex_);
};

/// For people: what the command took, then a table of what the devices did meanwhile, a line for
/// each of their readings. Percent, GB of 10^9 bytes, watts, celsius, joules.
std::string command_use_text(const CommandUse& use, const TerminalInfo& terminal);

/// For programs, on one line. Source: docs/formats/telemetry.md.
std::string command_use_json(const CommandUse& use);

}  // namespace muster
