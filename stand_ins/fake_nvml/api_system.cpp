#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "fake_nvml/driver.h"

namespace muster::fake_nvml {
namespace {

int get_count(Function function, unsigned* count) {
  return answer_system(function, [&](Driver& driver) -> int {
    if (count == nullptr) return kInvalidArgument;
    *count = driver.gpu_count();
    return kSuccess;
  });
}

int get_handle(Function function, unsigned index, DeviceHandle* handle) {
  count_call(function);
  Driver* const driver = loaded_driver();
  if (driver == nullptr) return kUninitialized;
  if (handle == nullptr || index >= driver->gpu_count()) return kInvalidArgument;
  if (const int code = driver->before(function, index); code != kSuccess) return code;
  const auto& lost = driver->gpu(index).spec.lost;
  if (lost && lost->covers(seconds(driver->clock().now_ns()))) return kGpuIsLost;
  *handle = driver->handle_of(index);
  return kSuccess;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
  return result;
}

int get_handle_by_pci(Function function, const char* address, DeviceHandle* handle) {
  return answer_system(function, [&](Driver& driver) -> int {
    if (address == nullptr || handle == nullptr) return kInvalidArgument;
    const auto wanted = lower(address);
    for (std::uint32_t i = 0; i < driver.gpu_count(); ++i) {
      const auto& gpu = driver.gpu(i).spec;
      // With the domain in eight digits or four.
      const auto rest = fmt::format("{:02x}:{:02x}.0", gpu.pci_bus, gpu.pci_device);
      if (wanted == fmt::format("{:08x}:{}", gpu.pci_domain, rest) ||
          wanted == fmt::format("{:04x}:{}", gpu.pci_domain, rest)) {
        *handle = driver.handle_of(i);
        return kSuccess;
      }
    }
    return kNotFound;
  });
}

int get_cuda_version(Function function, int* version) {
  return answer_system(function, [&](Driver& driver) -> int {
    if (version == nullptr) return kInvalidArgument;
    *version = static_cast<int>(driver.scenario().cuda_version);
    return kSuccess;
  });
}

}  // namespace

FAKENVML_EXPORT int nvmlInit_v2() {
  count_call(Function::nvmlInit_v2);
  return init_driver();
}

FAKENVML_EXPORT int nvmlInit() {
  count_call(Function::nvmlInit);
  return init_driver();
}

FAKENVML_EXPORT int nvmlInitWithFlags(unsigned /*flags*/) {
  count_call(Function::nvmlInitWithFlags);
  return init_driver();
}

FAKENVML_EXPORT int nvmlShutdown() {
  count_call(Function::nvmlShutdown);
  return shutdown_driver();
}

// Source: NVML API reference, nvmlErrorString, as libnvidia-ml.so words them.
FAKENVML_EXPORT const char* nvmlErrorString(int code) {
  count_call(Function::nvmlErrorString);
  switch (code) {
    case kSuccess:
      return "Success";
    case kUninitialized:
      return "Uninitialized";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNoPermission:
      return "Insufficient Permissions";
    case kNotFound:
      return "Not Found";
    case kInsufficientSize:
      return "Insufficient Size";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case kTimeout:
      return "Timeout";
    case kGpuIsLost:
      return "GPU is lost";
    case kLibraryVersionMismatch:
      return "Driver/library version mismatch";
    case kArgumentVersionMismatch:
      return "Argument version mismatch";
    default:
      return "Unknown Error";
  }
}

FAKENVML_EXPORT int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return answer_system(Function::nvmlSystemGetDriverVersion, [&](Driver& driver) {
    return copy_text(driver.scenario().driver_version, version, length);
  });
}

FAKENVML_EXPORT int nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return answer_system(Function::nvmlSystemGetNVMLVersion, [&](Driver& driver) {
    const auto& scenario = driver.scenario();
    return copy_text(fmt::format("{}.{}", scenario.cuda_version / 1000, scenario.driver_version),
                     version, length);
  });
}

FAKENVML_EXPORT int nvmlSystemGetCudaDriverVersion(int* version) {
  return get_cuda_version(Function::nvmlSystemGetCudaDriverVersion, version);
}

FAKENVML_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return get_cuda_version(Function::nvmlSystemGetCudaDriverVersion_v2, version);
}

FAKENVML_EXPORT int nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  return answer_system(Function::nvmlSystemGetProcessName, [&](Driver& driver) -> int {
    for (const auto& gpu : driver.scenario().gpus) {
      for (const auto& process : gpu.processes) {
        if (process.pid == pid && !process.name.empty()) {
          return copy_text(process.name, name, length);
        }
      }
    }
    return kNotFound;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetCount(unsigned* count) {
  return get_count(Function::nvmlDeviceGetCount, count);
}

FAKENVML_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  return get_count(Function::nvmlDeviceGetCount_v2, count);
}

FAKENVML_EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, DeviceHandle* handle) {
  return get_handle(Function::nvmlDeviceGetHandleByIndex, index, handle);
}

FAKENVML_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, DeviceHandle* handle) {
  return get_handle(Function::nvmlDeviceGetHandleByIndex_v2, index, handle);
}

FAKENVML_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, DeviceHandle* handle) {
  return answer_system(Function::nvmlDeviceGetHandleByUUID, [&](Driver& driver) -> int {
    if (uuid == nullptr || handle == nullptr) return kInvalidArgument;
    const auto found = driver.find_uuid(uuid);
    if (!found) return kNotFound;
    *handle = *found;
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetHandleByPciBusId(const char* address, DeviceHandle* handle) {
  return get_handle_by_pci(Function::nvmlDeviceGetHandleByPciBusId, address, handle);
}

FAKENVML_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* address, DeviceHandle* handle) {
  return get_handle_by_pci(Function::nvmlDeviceGetHandleByPciBusId_v2, address, handle);
}

}  // namespace muster::fake_nvml
