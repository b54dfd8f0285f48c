#pragma once

#include "hw/nvml/nvml_fields.h"

namespace muster {

/// NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, in mJ.
inline constexpr std::uint32_t kFieldEnergy = 83;

// Rows of the lists below that the sampler asks after.
enum FastRow : std::size_t {
  FastPowerInstant,
  FastPowerAverage,
  FastEnergy,
  FastPcieSent,
  FastPcieReceived
};
enum MediumRow : std::size_t { MediumNvlinkSent, MediumNvlinkReceived, MediumEnergy };
enum SlowRow : std::size_t {
  SlowPowerLimit,
  SlowPowerLimitDefault,
  SlowPowerLimitMin,
  SlowPowerLimitMax,
  SlowPcieReplays,
  SlowLinksActive,
  SlowEcc,                       // and the next three
  SlowRemaps = SlowEcc + 4,      // and the next three
  SlowRetired = SlowRemaps + 4,  // and the next
};

/// Power, energy if this is its tier, and PCIe's bytes where they are counted here.
std::vector<NvmlFieldReading> fast_fields(Tier energy_tier, bool counts_pcie);

/// link_count: NVLinks of the GPU; newer generations count a link each, older ones all together.
std::vector<NvmlFieldReading> medium_fields(Tier energy_tier, unsigned link_count);
std::vector<NvmlFieldReading> slow_fields(unsigned link_count);

}  // namespace muster
