// What does not change of a GPU, asked once. Everything but the handle is optional: a driver that
// cannot say its VBIOS is no reason to drop a GPU. Answers are given one form whatever the driver's
// version, PCI addresses above all, because they are the key by which links, sysfs and other
// programs are matched. Multiprocessors are derived from the driver's count of cores.

#include "hw/nvml/nvml_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/file.h"
#include "base/text.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// Far above any machine: a PCI bus has 256 numbers, and the largest servers carry tens of GPUs.
constexpr unsigned kGpuMax = 1024;

// FP32 lanes of a multiprocessor, by which the driver's count of "cores" is divided. Source: CUDA
// Programming Guide, compute capabilities, "128 FP32 cores for single-precision operations" and so
// on; cuda-samples, Common/helper_cuda.h, _ConvertSMVer2Cores.
std::optional<std::uint32_t> lanes_per_multiprocessor(std::uint32_t capability) {
  switch (capability) {
    case 60:
    case 70:
    case 72:
    case 75:
    case 80:
      return 64;
    case 50:
    case 52:
    case 53:
    case 61:
    case 62:
    case 86:
    case 87:
    case 89:
    case 90:
    case 100:
    case 101:
    case 103:
    case 110:
    case 120:
    case 121:
      return 128;
    default:
      return std::nullopt;
  }
}

std::optional<bool> read_switch(NvmlCaller& call, const NvmlFunctions::Number& function,
                                NvmlDevice device) {
  unsigned state = 0;
  if (call(function, device, &state) != kNvmlSuccess) return std::nullopt;
  return state != 0;
}

std::optional<bool> read_mode(NvmlCaller& call,
                              const NvmlFunction<NvmlDevice, unsigned*, unsigned*>& function,
                              NvmlDevice device) {
  unsigned current = 0;
  unsigned pending = 0;
  if (call(function, device, &current, &pending) != kNvmlSuccess) return std::nullopt;
  return current != 0;
}

// The node that memory for this GPU is best taken from: the driver's word, else the kernel's.
std::optional<std::uint32_t> read_numa_node(const NvmlFunctions& nvml, NvmlCaller& call,
                                            const NvmlGpu& gpu, const fs::path& root) {
  constexpr unsigned kScopeNode = 0;  // NVML_AFFINITY_SCOPE_NODE
  std::array<unsigned long, 16> nodes{};
  if (call(nvml.memory_affinity, gpu.handle, static_cast<unsigned>(nodes.size()), nodes.data(),
           kScopeNode) == kNvmlSuccess) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i] != 0) {
        return static_cast<std::uint32_t>(i * 64) +
               static_cast<std::uint32_t>(std::countr_zero(nodes[i]));
      }
    }
  }
  if (!gpu.pci) return std::nullopt;
  // sysfs writes four digits of the domain and small letters; -1: the firmware does not tell.
  const auto folder =
      fmt::format("{:04x}:{:02x}:{:02x}.0", gpu.pci->domain, gpu.pci->bus, gpu.pci->device);
  const auto text = read_file(root / "sys/bus/pci/devices" / folder / "numa_node", 64);
  if (!text) return std::nullopt;
  const auto trimmed = trim(*text);
  std::uint32_t node = 0;
  const auto [end, error] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), node);
  const bool is_whole = error == std::errc() && end == trimmed.data() + trimmed.size();
  return is_whole ? std::optional(node) : std::nullopt;
}

void read_memory(const NvmlFunctions& nvml, NvmlCaller& call, NvmlDevice handle,
                 DeviceIdentity& identity) {
  NvmlMemoryV2 newer{};
  newer.version = nvml_version(sizeof(newer), 2);
  NvmlMemory older{};
  std::optional<NvmlMemoryUse> use;
  auto code = call(nvml.memory_v2, handle, &newer);
  if (code == kNvmlSuccess) {
    use = memory_use(newer);
  } else {
    code = call(nvml.memory, handle, &older);
    if (code == kNvmlSuccess) use = memory_use(older);
  }
  if (use) {
    identity.device.memory_total_bytes = use->total;
    identity.device.memory_free_bytes = use->free;
  }
  // nvml.h on nvmlDeviceGetMemoryInfo: an integrated GPU shares the system's memory and answers
  // "not supported". With ATS, GPU and CPU walk one set of page tables.
  NvmlAddressingMode mode{nvml_version(sizeof(NvmlAddressingMode), 1), 0};
  identity.has_unified_memory =
      code == kNvmlNotSupported || (call(nvml.addressing_mode, handle, &mode) == kNvmlSuccess &&
                                    mode.mode == kNvmlAddressingAts);
}

void read_capability(const NvmlFunctions& nvml, NvmlCaller& call, NvmlDevice handle,
                     DeviceIdentity& identity) {
  int major = 0;
  int minor = 0;
  if (call(nvml.capability, handle, &major, &minor) != kNvmlSuccess) return;
  const auto capability = static_cast<std::uint32_t>(major * 10 + minor);
  identity.device.compute_capability = capability;
  unsigned cores = 0;
  const auto lanes = lanes_per_multiprocessor(capability);
  if (lanes && call(nvml.core_count, handle, &cores) == kNvmlSuccess) {
    identity.multiprocessor_count = cores / *lanes;
  }
}

// "13.0" from 13000.
std::optional<std::string> read_cuda_version(const NvmlFunctions& nvml, NvmlCaller& call) {
  int version = 0;
  if (call(nvml.cuda_version, &version) != kNvmlSuccess) return std::nullopt;
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

NvmlMemoryUse memory_use(const NvmlMemoryV2& memory) {
  return {memory.total, memory.free, memory.used, memory.reserved};
}

NvmlMemoryUse memory_use(const NvmlMemory& memory) {
  return {memory.total, memory.free, memory.used, std::nullopt};
}

std::optional<std::string> nvml_text(NvmlCaller& call, const NvmlFunctions::Text& function,
                                     NvmlDevice device) {
  std::array<char, kNvmlTextSize> text{};
  if (call(function, device, text.data(), kNvmlTextSize) != kNvmlSuccess) return std::nullopt;
  text.back() = '\0';
  if (text.front() == '\0') return std::nullopt;
  return std::string(text.data());
}

std::string nvml_pci_address(const NvmlPciInfo& pci) {
  const std::string_view legacy(pci.bus_id_legacy.data());
  const auto dot = legacy.rfind('.');
  const auto function = dot == std::string_view::npos ? "0" : legacy.substr(dot + 1);
  return fmt::format("{:08X}:{:02X}:{:02X}.{}", pci.domain, pci.bus, pci.device, function);
}

Result<unsigned> count_nvml_gpus(const NvmlLibrary& library, NvmlCaller& call) {
  unsigned count = 0;
  if (const auto code = call(library.functions().count, &count); code != kNvmlSuccess) {
    return Error{ErrorKind::Unavailable,
                 "the NVIDIA driver cannot count its GPUs: " + library.explain(code)};
  }
  if (count == 0) return Error{ErrorKind::Unavailable, "the NVIDIA driver has no GPU"};
  if (count > kGpuMax) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("the NVIDIA driver counts too many GPUs: {}", count)};
  }
  return count;
}

NvmlGpu read_nvml_gpu(const NvmlLibrary& library, NvmlCaller& call, unsigned index,
                      const fs::path& root) {
  const auto& nvml = library.functions();
  NvmlGpu gpu;
  auto& identity = gpu.identity;
  identity.device.kind = DeviceKind::Cuda;
  identity.driver_index = index;
  std::array<char, kNvmlTextSize> driver{};
  if (call(nvml.driver_version, driver.data(), kNvmlTextSize) == kNvmlSuccess) {
    driver.back() = '\0';
    identity.driver_version = driver.data();
  }
  identity.cuda_version = read_cuda_version(nvml, call);
  gpu.open_code = call(nvml.handle, index, &gpu.handle);
  if (gpu.open_code != kNvmlSuccess) {
    gpu.handle = nullptr;
    identity.is_barred = gpu.open_code == kNvmlNoPermission;
    return gpu;
  }
  identity.device.model = nvml_text(call, nvml.name, gpu.handle).value_or("");
  identity.device.uuid = nvml_text(call, nvml.uuid, gpu.handle);
  identity.serial = nvml_text(call, nvml.serial, gpu.handle);
  identity.vbios = nvml_text(call, nvml.vbios, gpu.handle);
  NvmlPciInfo pci{};
  if (call(nvml.pci, gpu.handle, &pci) == kNvmlSuccess) {
    pci.bus_id_legacy.back() = '\0';
    gpu.pci = pci;
    identity.device.pci_address = nvml_pci_address(pci);
  }
  read_memory(nvml, call, gpu.handle, identity);
  read_capability(nvml, call, gpu.handle, identity);
  identity.numa_node = read_numa_node(nvml, call, gpu, root);
  identity.is_ecc_on = read_mode(call, nvml.ecc_mode, gpu.handle);
  identity.is_mig_on = read_mode(call, nvml.mig_mode, gpu.handle);
  identity.is_persistent = read_switch(call, nvml.persistence, gpu.handle);
  unsigned mode = 0;
  if (call(nvml.compute_mode, gpu.handle, &mode) == kNvmlSuccess) identity.compute_mode = mode;
  return gpu;
}

// Fixed width and upper case, so the text sorts as the bus does.
bool is_before_on_bus(const NvmlGpu& a, const NvmlGpu& b) {
  return a.identity.device.pci_address < b.identity.device.pci_address;
}

}  // namespace muster
