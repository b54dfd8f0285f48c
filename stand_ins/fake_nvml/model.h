#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "spec/gpu_catalogue.h"

namespace muster::fake_nvml {

/// In the order in which they came: a feature is there from one of them on.
enum class Architecture : std::uint8_t { Volta, Turing, Ampere, Ada, Hopper, Blackwell };

/// What the driver would tell of a type of GPU beside the catalogue's facts.
struct Model {
  const GpuFacts* facts = nullptr;
  std::string_view name;  // "H200", as scenarios write it
  Architecture architecture = Architecture::Hopper;
  std::uint32_t compute_capability = 90;
  std::uint32_t multiprocessor_count = 132;
  double power_limit_watts = 700;
  double power_limit_min_watts = 200;
  std::uint32_t sm_clock_max_mhz = 1980;
  std::uint32_t sm_clock_idle_mhz = 345;
  std::uint32_t memory_clock_mhz = 3201;
  std::uint32_t pci_device_id = 0;  // device id << 16 | vendor id
  bool has_memory_temperature = true;
  bool has_row_remapper = true;  // else pages are retired
  bool has_fan = false;
};

/// Errors: NotFound with the nearest name.
Result<const Model*> find_model(std::string_view name);

}  // namespace muster::fake_nvml
