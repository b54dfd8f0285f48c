#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hw/amd/amd_topology.h"
#include "spec/telemetry.h"

namespace muster {

/// One thermometer of a card.
struct AmdThermometer {
  Reading reading;                          // what it measures
  std::filesystem::path file;               // temp1_input, thousandths of a degree
  std::optional<double> critical_celsius;   // the clock is lowered there
  std::optional<double> emergency_celsius;  // the card switches itself off there
};

/// A card of amdgpu as it is found, and where its readings are.
struct AmdCard {
  DeviceIdentity identity;
  std::string pci;               // "0000:c1:00.0", as the kernel writes it
  std::filesystem::path device;  // ".../card1/device"
  std::optional<std::filesystem::path> hwmon;
  std::vector<AmdThermometer> thermometers;
  std::vector<KfdGpu> partitions;  // of KFD; more than one where the card is divided
};

/// The cards of vendor 0x1002 that have memory, in PCI order. root: in front of /sys.
///
/// Source: Linux, Documentation/gpu/amdgpu/driver-misc.rst, thermal.rst;
/// drivers/gpu/drm/amd/pm/amdgpu_pm.c (hwmon names and units).
std::vector<AmdCard> find_amd_cards(const std::filesystem::path& root, const KfdTopology& topology);

/// The generation of a speed as sysfs writes it: "16.0 GT/s PCIe" → 4. nullopt: none of them.
/// Source: Linux, drivers/pci/probe.c, pcie_link_speed.
std::optional<std::uint32_t> pcie_generation_of(std::string_view speed);

/// The highest clock of a list "0: 132Mhz\n1: 2100Mhz *\n", in hertz.
std::optional<double> highest_clock(std::string_view list);

}  // namespace muster
