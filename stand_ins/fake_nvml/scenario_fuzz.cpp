#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "fake_nvml/scenario.h"
#include "fake_nvml/sensor.h"

// Any bytes are either a scenario whose sensors answer at every time, or one sentence.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace muster::fake_nvml;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto scenario = parse_scenario(text, "input", 590);
  if (!scenario) {
    MUSTER_CHECK(scenario.error().message.starts_with("input:"));
    return 0;
  }
  for (const auto& gpu : scenario->gpus) {
    const Sensor sensor(gpu);
    for (const std::int64_t now_ns : {std::int64_t{0}, std::int64_t{1'234'567'890}}) {
      MUSTER_CHECK(sensor.load(now_ns) >= 0 && sensor.load(now_ns) <= 1);
      MUSTER_CHECK(sensor.utilization_percent(now_ns) <= 100);
    }
  }
  return 0;
}
