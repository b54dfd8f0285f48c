#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "hw/amd/amd_metrics.h"

// Whatever the file holds: an error, or shares that are shares and no number that is none.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto metrics = muster::parse_gpu_metrics(std::as_bytes(std::span(data, size)));
  if (!metrics) return 0;
  const auto is_share = [](std::optional<double> value) {
    return !value || (*value >= 0.0 && *value <= 1.0);
  };
  MUSTER_CHECK(is_share(metrics->activity) && is_share(metrics->memory_activity));
  for (const auto& share : metrics->partition_activity) MUSTER_CHECK(is_share(share));
  for (const auto value : {metrics->power_now, metrics->power_average, metrics->energy_joules,
                           metrics->clock_graphics, metrics->xgmi_read_bytes}) {
    MUSTER_CHECK(!value || *value >= 0.0);
  }
  MUSTER_CHECK(metrics->partition_activity.size() <= 8);
  if (metrics->throttle) muster::clock_events_of(*metrics->throttle);
  return 0;
}
