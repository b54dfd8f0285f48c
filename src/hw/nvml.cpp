#include "hw/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace muster {
namespace {

// The part of nvml.h that is used, so that no header of the vendor is needed to build.
using Handle = void*;
using Code = int;
constexpr Code kSuccess = 0;
constexpr std::size_t kNameSize = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE, _UUID_V2_BUFFER_SIZE

// nvmlPciInfo_t of the calls _v2 and _v3: 68 bytes. The first name is the older, shorter form.
struct PciInfo {
  std::array<char, 16> bus_id_legacy;
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t pci_device_id;
  std::uint32_t pci_subsystem_id;
  std::array<char, 32> bus_id;
};
static_assert(sizeof(PciInfo) == 68);

// nvmlMemory_t of the first version: 24 bytes.
struct Memory {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(Memory) == 24);

struct LibraryCloser {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, LibraryCloser>;

// The entry points. Newest name first: a driver keeps the old ones with the old meaning.
struct Nvml {
  Code (*init)() = nullptr;
  Code (*shutdown)() = nullptr;
  const char* (*error_string)(Code) = nullptr;
  Code (*count)(unsigned*) = nullptr;
  Code (*handle)(unsigned, Handle*) = nullptr;
  Code (*uuid)(Handle, char*, unsigned) = nullptr;
  Code (*name)(Handle, char*, unsigned) = nullptr;
  Code (*pci)(Handle, PciInfo*) = nullptr;
  Code (*memory)(Handle, Memory*) = nullptr;
  Code (*capability)(Handle, int*, int*) = nullptr;  // may be missing

  bool is_complete() const {
    return init != nullptr && shutdown != nullptr && count != nullptr && handle != nullptr &&
           uuid != nullptr && name != nullptr && pci != nullptr && memory != nullptr;
  }

  std::string explain(Code code) const {
    const char* words = error_string != nullptr ? error_string(code) : nullptr;
    return words != nullptr ? fmt::format("{} (NVML {})", words, code)
                            : fmt::format("NVML {}", code);
  }
};

template <typename Function>
void look_up(void* library, std::initializer_list<const char*> names, Function& function) {
  for (const char* name : names) {
    if (void* symbol = dlsym(library, name)) {
      function = reinterpret_cast<Function>(symbol);
      return;
    }
  }
}

Nvml look_up_all(void* library) {
  Nvml nvml;
  look_up(library, {"nvmlInit_v2", "nvmlInit"}, nvml.init);
  look_up(library, {"nvmlShutdown"}, nvml.shutdown);
  look_up(library, {"nvmlErrorString"}, nvml.error_string);
  look_up(library, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, nvml.count);
  look_up(library, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}, nvml.handle);
  look_up(library, {"nvmlDeviceGetUUID"}, nvml.uuid);
  look_up(library, {"nvmlDeviceGetName"}, nvml.name);
  // Not the unversioned one: its struct is shorter.
  look_up(library, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"}, nvml.pci);
  look_up(library, {"nvmlDeviceGetMemoryInfo"}, nvml.memory);
  look_up(library, {"nvmlDeviceGetCudaComputeCapability"}, nvml.capability);
  return nvml;
}

// _v2 fills only the short name ("0000:1b:00.0"), _v3 both; the long one is rebuilt from the
// numbers so that the form is the same with every driver.
std::string pci_address(const PciInfo& pci) {
  const std::string_view legacy(pci.bus_id_legacy.data());
  const auto dot = legacy.rfind('.');
  const auto function = dot == std::string_view::npos ? "0" : legacy.substr(dot + 1);
  return fmt::format("{:08X}:{:02X}:{:02X}.{}", pci.domain, pci.bus, pci.device, function);
}

std::optional<Device> read_gpu(const Nvml& nvml, unsigned index) {
  Handle handle = nullptr;
  if (nvml.handle(index, &handle) != kSuccess) return std::nullopt;

  Device device;
  device.kind = DeviceKind::Cuda;
  std::array<char, kNameSize> text{};
  if (nvml.name(handle, text.data(), kNameSize) == kSuccess) {
    text.back() = '\0';
    device.model = text.data();
  }
  text.fill('\0');
  if (nvml.uuid(handle, text.data(), kNameSize) == kSuccess) {
    text.back() = '\0';
    device.uuid = text.data();
  }
  PciInfo pci{};
  if (nvml.pci(handle, &pci) == kSuccess) {
    pci.bus_id_legacy.back() = '\0';
    device.pci_address = pci_address(pci);
  }
  // Integrated GPUs answer "not supported": they share the machine's memory.
  Memory memory{};
  if (nvml.memory(handle, &memory) == kSuccess) {
    device.memory_total_bytes = memory.total;
    device.memory_free_bytes = memory.free;
  }
  int major = 0;
  int minor = 0;
  if (nvml.capability != nullptr && nvml.capability(handle, &major, &minor) == kSuccess) {
    device.compute_capability = static_cast<std::uint32_t>(major * 10 + minor);
  }
  return device;
}

Result<std::vector<Device>> list_gpus(const Nvml& nvml) {
  unsigned count = 0;
  if (const auto code = nvml.count(&count); code != kSuccess) {
    return Error{ErrorKind::Unavailable,
                 "the NVIDIA driver cannot count its GPUs: " + nvml.explain(code)};
  }
  std::vector<Device> gpus;
  for (unsigned index = 0; index < count; ++index) {
    if (auto gpu = read_gpu(nvml, index)) gpus.push_back(std::move(*gpu));
  }
  if (gpus.empty()) {
    return Error{ErrorKind::Unavailable,
                 count == 0 ? "the NVIDIA driver has no GPU"
                            : fmt::format("the NVIDIA driver can open none of its {} GPUs", count)};
  }
  // Fixed width and upper case, so the text sorts as the bus does.
  std::stable_sort(gpus.begin(), gpus.end(), [](const Device& a, const Device& b) {
    return a.pci_address.value_or("~") < b.pci_address.value_or("~");
  });
  for (std::uint32_t index = 0; index < gpus.size(); ++index) gpus[index].index = index;
  return gpus;
}

}  // namespace

Result<std::vector<Device>> find_nvidia_gpus(const std::vector<std::string>& libraries) {
  Library library;
  for (const auto& name : libraries) {
    library.reset(dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL));
    if (library) break;
  }
  if (!library) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("no NVIDIA driver ({})", libraries.empty() ? "" : libraries.front())};
  }
  const auto nvml = look_up_all(library.get());
  if (!nvml.is_complete()) {
    return Error{ErrorKind::Unavailable, "the NVIDIA driver is too old: NVML lacks a function"};
  }
  if (const auto code = nvml.init(); code != kSuccess) {
    return Error{ErrorKind::Unavailable, "the NVIDIA driver does not start: " + nvml.explain(code)};
  }
  auto gpus = list_gpus(nvml);
  nvml.shutdown();
  return gpus;
}

}  // namespace muster
