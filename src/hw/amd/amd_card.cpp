// A card as sysfs shows it; no library of AMD's is needed. The PCI slot is the key by which the
// graphics driver (DRM) and the compute driver (KFD) are matched. A card that reports no memory is
// left out, as no model could run on it. On APUs the memory of graphics is a part of the system's,
// so what is free is bounded by what the system has left.

#include "hw/amd/amd_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "hw/amd/amd_metrics.h"
#include "hw/cpu/host_memory.h"
#include "hw/kernel_file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVendor = "0x1002";

struct KnownModel {
  std::uint64_t device = 0;
  std::optional<std::uint64_t> revision;  // nullopt: all of them
  std::string_view name;
};

// Where the card itself does not hold its name in a form that the catalogue knows.
// Source: libdrm, data/amdgpu.ids.
constexpr std::array kModels{
    KnownModel{0x7408, {}, "AMD Instinct MI250X"},
    KnownModel{0x740c, {}, "AMD Instinct MI250X"},
    KnownModel{0x740f, {}, "AMD Instinct MI210"},
    KnownModel{0x744c, 0xc8, "AMD Radeon RX 7900 XTX"},
    KnownModel{0x74a0, {}, "AMD Instinct MI300A"},
    KnownModel{0x74a1, {}, "AMD Instinct MI300X"},
    KnownModel{0x74a5, {}, "AMD Instinct MI325X"},
};
constexpr std::uint64_t kMi300a = 0x74a0;  // its HBM is the memory of its CPU cores too

std::optional<std::uint64_t> number_in(const fs::path& file) {
  const auto text = small_text(file);
  const auto number = text ? leading_number(*text) : std::nullopt;
  return number && *number >= 0 ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

std::optional<std::uint64_t> hex_in(const fs::path& file) {
  const auto text = small_text(file);
  return text ? hex_number(*text) : std::nullopt;
}

std::string model_of(const fs::path& device) {
  const auto id = hex_in(device / "device");
  const auto revision = hex_in(device / "revision");
  for (const auto& known : kModels) {
    if (known.device == id && (!known.revision || known.revision == revision)) {
      return std::string(known.name);
    }
  }
  if (auto name = small_text(device / "product_name")) return *name;
  return fmt::format("AMD GPU 1002:{:04x}", id.value_or(0));
}

// The kernel's own name of the slot: a line "PCI_SLOT_NAME=0000:c1:00.0".
std::optional<std::string> slot_of(const fs::path& device) {
  constexpr std::string_view kKey = "PCI_SLOT_NAME=";
  const auto text = small_text(device / "uevent");
  if (!text) return std::nullopt;
  for (const auto& line : split(*text, '\n')) {
    if (line.starts_with(kKey)) return line.substr(kKey.size());
  }
  return std::nullopt;
}

// "0000:c1:00.0" → domain << 16 | bus << 8 | device << 3 | function.
std::optional<std::uint64_t> pci_number(std::string_view slot) {
  const auto parts = split(slot, ':');
  if (parts.size() != 3) return std::nullopt;
  const auto dot = parts[2].find('.');
  if (dot == std::string::npos) return std::nullopt;
  const auto domain = hex_number(parts[0]);
  const auto bus = hex_number(parts[1]);
  const auto device = hex_number(std::string_view(parts[2]).substr(0, dot));
  const auto function = hex_number(std::string_view(parts[2]).substr(dot + 1));
  if (!domain || !bus || !device || !function || *bus > 0xff || *device > 0x1f || *function > 7) {
    return std::nullopt;
  }
  return *domain << 16 | *bus << 8 | *device << 3 | *function;
}

// In the form of the other vendors' drivers: "00000000:C1:00.0".
std::string shown_pci(std::uint64_t pci) {
  return fmt::format("{:08X}:{:02X}:{:02X}.{:X}", pci >> 16, (pci >> 8) & 0xff, (pci >> 3) & 0x1f,
                     pci & 7);
}

std::optional<fs::path> hwmon_of(const fs::path& device) {
  std::error_code ignored;
  for (fs::directory_iterator entry(device / "hwmon", ignored), end; entry != end;
       entry.increment(ignored)) {
    if (entry->path().filename().string().starts_with("hwmon")) return entry->path();
  }
  return std::nullopt;
}

std::optional<double> celsius_in(const fs::path& file) {
  const auto thousandths = number_in(file);
  return thousandths ? std::optional(static_cast<double>(*thousandths) / 1000.0) : std::nullopt;
}

std::vector<AmdThermometer> thermometers_of(const fs::path& hwmon) {
  struct Label {
    std::string_view label;
    Reading reading;
  };
  constexpr std::array kLabels{Label{"edge", Reading::GpuTemperatureCore},
                               Label{"junction", Reading::GpuTemperatureHotspot},
                               Label{"mem", Reading::GpuTemperatureMemory}};
  std::vector<AmdThermometer> found;
  for (int i = 1; i <= 3; ++i) {
    const auto name = fmt::format("temp{}_", i);
    const auto label = small_text(hwmon / (name + "label"));
    const auto* known = std::find_if(kLabels.begin(), kLabels.end(),
                                     [&](const Label& one) { return one.label == label; });
    if (known == kLabels.end()) continue;
    found.push_back({known->reading, hwmon / (name + "input"), celsius_in(hwmon / (name + "crit")),
                     celsius_in(hwmon / (name + "emergency"))});
  }
  return found;
}

bool has_unified_memory(const AmdCard& card) {
  if (hex_in(card.device / "device") == kMi300a) return true;
  const auto is_node_of_both = [](const KfdGpu& gpu) { return gpu.has_cpu_cores; };
  if (std::any_of(card.partitions.begin(), card.partitions.end(), is_node_of_both)) return true;
  const auto table = small_text(card.device / "gpu_metrics");
  if (!table) return false;
  const auto metrics = parse_gpu_metrics(std::as_bytes(std::span(*table)));
  return metrics && metrics->is_apu;
}

std::uint64_t less(std::uint64_t all, std::uint64_t part) { return all - std::min(all, part); }

void read_memory(AmdCard& card, const fs::path& root) {
  auto& device = card.identity.device;
  device.memory_total_bytes = number_in(card.device / "mem_info_vram_total");
  const auto used = number_in(card.device / "mem_info_vram_used");
  if (!device.memory_total_bytes || !used) return;
  device.memory_free_bytes = less(*device.memory_total_bytes, *used);
  if (!card.identity.has_unified_memory) return;
  // What is set aside for graphics is no memory of the system's any more; GTT is, and no more of it
  // can be had than the system has left.
  device.has_unified_memory = true;
  const auto gtt = number_in(card.device / "mem_info_gtt_total").value_or(0);
  const auto gtt_used = number_in(card.device / "mem_info_gtt_used").value_or(0);
  const auto meminfo = small_text(root / "proc/meminfo").value_or(std::string());
  const auto left = meminfo_bytes(meminfo, "MemAvailable").value_or(gtt);
  *device.memory_total_bytes += gtt;
  *device.memory_free_bytes += std::min(less(gtt, gtt_used), left);
}

std::optional<AmdCard> card_at(const fs::path& root, const fs::path& folder, std::uint32_t number,
                               const KfdTopology& topology) {
  AmdCard card;
  card.device = folder / "device";
  if (small_text(card.device / "vendor") != kVendor) return std::nullopt;
  const auto slot = slot_of(card.device);
  const auto pci = slot ? pci_number(*slot) : std::nullopt;
  if (!pci) return std::nullopt;
  card.pci = *slot;
  for (const auto& gpu : topology.gpus) {
    if (gpu.pci == *pci) card.partitions.push_back(gpu);
  }
  auto& identity = card.identity;
  identity.device.kind = DeviceKind::Rocm;
  identity.device.model = model_of(card.device);
  identity.device.pci_address = shown_pci(*pci);
  // As ROCm names it, so that ROCR_VISIBLE_DEVICES takes it.
  if (const auto id = hex_in(card.device / "unique_id"); id && *id != 0) {
    identity.device.uuid = fmt::format("GPU-{:016x}", *id);
  }
  identity.driver_version = small_text(root / "sys/module/amdgpu/version");
  identity.vbios = small_text(card.device / "vbios_version");
  identity.serial = small_text(card.device / "serial_number");
  identity.driver_index = number;
  if (const auto node = number_in(card.device / "numa_node")) {  // -1 where there is only one
    identity.numa_node = static_cast<std::uint32_t>(*node);
  }
  identity.has_unified_memory = has_unified_memory(card);
  read_memory(card, root);
  if (!identity.device.memory_total_bytes) return std::nullopt;
  card.hwmon = hwmon_of(card.device);
  if (card.hwmon) card.thermometers = thermometers_of(*card.hwmon);
  return card;
}

}  // namespace

std::vector<AmdCard> find_amd_cards(const fs::path& root, const KfdTopology& topology) {
  constexpr std::string_view kPrefix = "card";
  std::vector<AmdCard> cards;
  std::error_code ignored;
  for (fs::directory_iterator entry(root / "sys/class/drm", ignored), end; entry != end;
       entry.increment(ignored)) {
    const auto name = entry->path().filename().string();
    const bool is_card =
        name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
        std::all_of(name.begin() + kPrefix.size(), name.end(),
                    [](unsigned char c) { return std::isdigit(c) != 0; });  // no "card0-DP-1"
    if (!is_card) continue;
    const auto number = leading_number(std::string_view(name).substr(kPrefix.size())).value_or(0);
    auto card = card_at(root, entry->path(), static_cast<std::uint32_t>(number), topology);
    if (card) cards.push_back(std::move(*card));
  }
  std::sort(cards.begin(), cards.end(), [](const AmdCard& a, const AmdCard& b) {
    return a.identity.device.pci_address < b.identity.device.pci_address;
  });
  for (std::size_t i = 0; i < cards.size(); ++i) {
    cards[i].identity.device.index = static_cast<std::uint32_t>(i);
  }
  return cards;
}

std::optional<std::uint32_t> pcie_generation_of(std::string_view speed) {
  constexpr std::array<std::string_view, 6> kSpeeds{"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"};
  const auto number = speed.substr(0, speed.find(' '));
  const auto* found = std::find(kSpeeds.begin(), kSpeeds.end(), number);
  if (found == kSpeeds.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - kSpeeds.begin()) + 1;
}

std::optional<double> highest_clock(std::string_view list) {
  std::optional<double> highest;
  for (const auto& line : split(list, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto mhz = leading_number(std::string_view(line).substr(colon + 1));
    if (mhz && *mhz > 0) highest = std::max(highest.value_or(0), static_cast<double>(*mhz) * 1e6);
  }
  return highest;
}

}  // namespace muster
