// Which fields are read in which tier, in the order of the enums of the header: a row's position is
// its name elsewhere, so rows are never inserted without their enum. Units are those of the driver
// and are scaled here. Where a generation moved a counter, both places are listed, the older first.
// Source of every number: nvml.h 13.3, NVML_FI_*.

#include "hw/nvml/nvml_field_lists.h"

namespace muster {
namespace {

using enum Reading;
using Alternatives = std::vector<std::vector<NvmlField>>;

constexpr double kMilli = 1e-3;
constexpr double kNano = 1e-9;
constexpr double kKibibyte = 1024.0;

// NVML_POWER_SCOPE_*: the module is GPU and CPU of a superchip.
constexpr std::uint32_t kScopeModule = 1;
constexpr std::uint32_t kScopeMemory = 2;

Alternatives only(std::uint32_t id, std::uint32_t scope = 0) { return {{{id, scope, 1}}}; }

std::vector<NvmlField> each_link(std::uint32_t id, unsigned link_count) {
  std::vector<NvmlField> fields;
  for (unsigned link = 0; link < link_count; ++link) fields.push_back({id, link, 1});
  return fields;
}

// Counters in KiB of all links together; from NVLink 5 on in bytes, link by link.
Alternatives nvlink_bytes(std::uint32_t total_kibibytes, std::uint32_t link_bytes,
                          unsigned link_count) {
  if (link_count == 0) return {};
  return {{{total_kibibytes, kNvmlAllLinks, kKibibyte}}, each_link(link_bytes, link_count)};
}

// Its row is in both tiers, and empty in the one that does not ask for it.
NvmlFieldReading energy_field(bool is_asked_for) {
  if (!is_asked_for) return {};
  return {GpuEnergy, kMilli, only(kFieldEnergy)};
}

}  // namespace

// Source of every number: nvml.h 13.3, NVML_FI_*.
std::vector<NvmlFieldReading> fast_fields(Tier energy_tier, bool counts_pcie) {
  std::vector<NvmlFieldReading> fields{{GpuPowerInstant, kMilli, only(186)},
                                       {GpuPowerAverage, kMilli, only(185)},
                                       energy_field(energy_tier == Tier::Fast)};
  if (counts_pcie) {
    fields.push_back({std::nullopt, 1, only(197)});
    fields.push_back({std::nullopt, 1, only(198)});
  } else {
    fields.resize(fields.size() + 2);
  }
  return fields;
}

std::vector<NvmlFieldReading> medium_fields(Tier energy_tier, unsigned link_count) {
  return {
      {GpuNvlinkSent, 1, nvlink_bytes(138, 202, link_count)},
      {GpuNvlinkReceived, 1, nvlink_bytes(139, 204, link_count)},
      energy_field(energy_tier == Tier::Medium),
      {GpuTemperatureMemory, 1, only(82)},
      {GpuModulePowerInstant, kMilli, only(186, kScopeModule)},
      {GpuModulePowerAverage, kMilli, only(185, kScopeModule)},
      {GpuMemoryPowerInstant, kMilli, only(186, kScopeMemory)},
      {GpuThrottleSwPowerCap, kNano, only(74)},
      {GpuThrottleSyncBoost, kNano, only(76)},
      {GpuThrottleSwThermal, kNano, only(269)},
      {GpuThrottleHwThermal, kNano, only(270)},
      {GpuThrottleHwPowerBrake, kNano, only(271)},
      {GpuRecoveryAction, 1, only(230)},
  };
}

std::vector<NvmlFieldReading> slow_fields(unsigned link_count) {
  // Totals over all links; on Hopper counters of the data link layer, link by link; from NVLink 5
  // on only recoveries are counted.
  const auto errors = [&](std::initializer_list<std::uint32_t> totals_then_links) {
    Alternatives alternatives;
    if (link_count == 0) return alternatives;
    for (const auto id : totals_then_links) {
      alternatives.push_back(id < 160 ? std::vector<NvmlField>{{id, 0, 1}}
                                      : each_link(id, link_count));
    }
    return alternatives;
  };
  return {
      {GpuPowerLimitEnforced, kMilli, only(190)},
      {GpuPowerLimitDefault, kMilli, only(189)},
      {GpuPowerLimitMin, kMilli, only(187)},
      {GpuPowerLimitMax, kMilli, only(188)},
      {GpuPcieReplays, 1, only(94)},
      {GpuNvlinkLinksActive, 1, {each_link(165, link_count)}, true},
      {GpuEccCorrectedVolatile, 1, only(3)},
      {GpuEccUncorrectedVolatile, 1, only(4)},
      {GpuEccCorrectedAggregate, 1, only(5)},
      {GpuEccUncorrectedAggregate, 1, only(6)},
      {GpuRemappedRowsCorrectable, 1, only(142)},
      {GpuRemappedRowsUncorrectable, 1, only(143)},
      {GpuRemapPending, 1, only(144)},
      {GpuRemapFailed, 1, only(145)},
      {GpuRetiredPagesSingleBit, 1, only(29)},
      {GpuRetiredPagesDoubleBit, 1, only(30)},
      {GpuNvlinkCrcFlitErrors, 1, errors({38, 163})},
      {GpuNvlinkCrcDataErrors, 1, errors({45})},
      {GpuNvlinkReplayErrors, 1, errors({52, 161})},
      {GpuNvlinkRecoveryErrors, 1, errors({59, 162, 215})},
  };
}

}  // namespace muster
