#pragma once

#include <cstdint>
#include <optional>

#include "hw/amd/amd_metrics.h"

namespace muster {

/// Why and for how long the firmware held the clock down, from its residencies at two looks and
/// more. A residency that fell was set back and counts as standing still.
///
///   seconds = rise of the residency / rise of all steps x time passed on the firmware's clock
///
/// Threads: not thread-safe; owned by one sampler. Source: the meaning of the counters as in
/// amd_smi's violation status (rise of a residency / rise of accumulation_counter).
class AmdThrottle {
 public:
  struct Seconds {
    double power = 0;
    double thermal = 0;
    double hot_signal = 0;
  };

  /// Bits of ClockEvent for what rose since the last look; nullopt at the first one, and where the
  /// table has no residencies.
  std::optional<std::uint32_t> add(const AmdMetrics& metrics);

  /// Since the first look; nullopt until the firmware has told by how much its clock went on.
  const std::optional<Seconds>& seconds() const { return seconds_; }

 private:
  std::optional<AmdResidencies> last_;
  std::optional<double> last_firmware_seconds_;
  std::optional<Seconds> seconds_;
};

}  // namespace muster
