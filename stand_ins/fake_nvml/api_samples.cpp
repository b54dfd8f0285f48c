#include <algorithm>
#include <cmath>
#include <vector>

#include "fake_nvml/driver.h"

namespace muster::fake_nvml {
namespace {

constexpr unsigned kPowerSamples = 0;        // NVML_TOTAL_POWER_SAMPLES
constexpr unsigned kUtilizationSamples = 1;  // NVML_GPU_UTILIZATION_SAMPLES
constexpr unsigned kMemorySamples = 2;       // NVML_MEMORY_UTILIZATION_SAMPLES
// The buffer that the driver keeps here: the last 120 refreshes of the sensor.
constexpr std::int64_t kKept = 120;
constexpr std::int64_t kStepNs = 100'000'000;

unsigned sample_at(const Visit& visit, unsigned kind, std::int64_t at_ns) {
  const auto& sensor = visit.gpu.sensor;
  if (kind == kPowerSamples) {
    return static_cast<unsigned>(std::lround(sensor.instant_watts(at_ns) * 1e3));
  }
  return kind == kUtilizationSamples ? sensor.utilization_percent(at_ns)
                                     : sensor.memory_busy_percent(at_ns);
}

}  // namespace

FAKENVML_EXPORT int nvmlDeviceGetSamples(DeviceHandle device, unsigned kind, std::uint64_t after_us,
                                         unsigned* value_type, unsigned* count, Sample* out) {
  return answer_gpu(Function::nvmlDeviceGetSamples, device, [&](const Visit& visit) -> int {
    if (value_type == nullptr || count == nullptr) return kInvalidArgument;
    if (kind > kMemorySamples) return kNotSupported;
    if (visit.spec().mig && kind != kPowerSamples) return kNotSupported;
    *value_type = kUnsignedInt;
    if (out == nullptr) {
      *count = kKept;
      return kSuccess;
    }
    const auto now_us = visit.driver.clock().wall_us();
    const auto last = visit.now_ns / kStepNs;
    unsigned written = 0;
    for (auto step = std::max<std::int64_t>(0, last - kKept + 1); step <= last; ++step) {
      const auto age_us = (visit.now_ns - step * kStepNs) / 1000;
      const auto time_us = static_cast<std::uint64_t>(now_us - age_us);
      if (time_us <= after_us || written == *count) continue;
      out[written].timestamp_us = time_us;
      out[written].value.as_unsigned_long_long = 0;
      out[written].value.as_unsigned = sample_at(visit, kind, step * kStepNs);
      ++written;
    }
    *count = written;
    return written == 0 ? kNotFound : kSuccess;
  });
}

}  // namespace muster::fake_nvml
