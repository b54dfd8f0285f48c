#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hw/nvml/nvml_library.h"

namespace muster {

/// A GPU that the driver lists.
struct NvmlGpu {
  NvmlDevice handle = nullptr;  // nullptr: the driver cannot open it,
  NvmlCode open_code = 0;       // and says this
  std::optional<NvmlPciInfo> pci;
  DeviceIdentity identity;
};

/// How many GPUs the driver lists.
///
/// Errors: Unavailable when it cannot count them, has none, or says a number beyond reason.
Result<unsigned> count_nvml_gpus(const NvmlLibrary& library, NvmlCaller& call);

/// Opens a GPU and asks what does not change; what the driver does not tell is unset. root: in
/// front of /sys.
NvmlGpu read_nvml_gpu(const NvmlLibrary& library, NvmlCaller& call, unsigned index,
                      const std::filesystem::path& root);

/// PCI order, of two whose address is known.
bool is_before_on_bus(const NvmlGpu& a, const NvmlGpu& b);

/// A text that the driver writes; nullopt where it does not, or writes nothing.
std::optional<std::string> nvml_text(NvmlCaller& call, const NvmlFunctions::Text& function,
                                     NvmlDevice device);

/// "00000000:1B:00.0": _v2 fills only the short name ("0000:1b:00.0"), _v3 both; the long one is
/// rebuilt from the numbers so that the form is the same with every driver.
std::string nvml_pci_address(const NvmlPciInfo& pci);

/// Memory as it is now. What the driver reserves is beside `used`; the first version of the call
/// has it within `used` and does not tell how much it is.
struct NvmlMemoryUse {
  std::uint64_t total = 0;
  std::uint64_t free = 0;
  std::uint64_t used = 0;
  std::optional<std::uint64_t> reserved;
};
NvmlMemoryUse memory_use(const NvmlMemoryV2& memory);
NvmlMemoryUse memory_use(const NvmlMemory& memory);

}  // namespace muster
