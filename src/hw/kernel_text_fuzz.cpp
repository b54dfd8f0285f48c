#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "hw/amd/amd_card.h"
#include "hw/amd/amd_processes.h"
#include "hw/cpu/cpu_load.h"
#include "hw/cpu/host_memory.h"
#include "hw/kernel_file.h"

// Whatever stands in a file under /proc or /sys: no value, or one in its range.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::array<std::uint32_t, 3> kCpus{0, 1, 300};
  const auto half = text.substr(size / 2);
  const auto before = muster::parse_cpu_ticks(text, kCpus);
  const auto after = muster::parse_cpu_ticks(half, kCpus);
  const auto load = muster::load_between(before, after);
  MUSTER_CHECK(load.cores.empty() || load.cores.size() == kCpus.size());
  for (const auto core : load.cores) MUSTER_CHECK(core >= 0.0F && core <= 1.0F);
  MUSTER_CHECK(!load.mean || (*load.mean >= 0.0 && *load.mean <= 1.0));
  muster::meminfo_bytes(text, "MemTotal");
  const auto client = muster::parse_drm_fdinfo(text);
  MUSTER_CHECK(!client || !client->pci.empty());
  const auto clock = muster::highest_clock(text);
  MUSTER_CHECK(!clock || *clock > 0.0);
  muster::pcie_generation_of(text);
  muster::leading_number(text);
  muster::hex_number(text);
  return 0;
}
