#include <cstdint>

#include "fake_nvml/driver.h"

/// What a test asks of the stand-in beside NVML. Format and meaning: docs/formats/fake-nvml.md.
namespace muster::fake_nvml {

FAKENVML_EXPORT void fakenvml_set_time_ns(std::uint64_t now_ns) {
  own_stepped_time().store(static_cast<std::int64_t>(now_ns));
  if (const auto* driver = loaded_driver()) {
    driver->clock().set_ns(static_cast<std::int64_t>(now_ns));
  }
}

FAKENVML_EXPORT void fakenvml_advance_ns(std::uint64_t by_ns) {
  if (const auto* driver = loaded_driver()) {
    driver->clock().advance_ns(static_cast<std::int64_t>(by_ns));
  }
}

/// Calls of one function, 0 for one that is not here; nullptr: of all.
FAKENVML_EXPORT std::uint64_t fakenvml_call_count(const char* function) {
  if (function != nullptr) {
    const auto found = find_function(function);
    return found ? call_count(*found) : 0;
  }
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kFunctionCount; ++i) sum += call_count(static_cast<Function>(i));
  return sum;
}

/// What a GPU truly used between two times of the scenario's clock; negative: there is no such GPU.
FAKENVML_EXPORT double fakenvml_true_energy_joules(unsigned gpu, double from_s, double until_s) {
  const auto* driver = loaded_driver();
  if (driver == nullptr || gpu >= driver->gpu_count()) return -1;
  return driver->gpu(gpu).sensor.true_joules(from_s, until_s);
}

}  // namespace muster::fake_nvml
