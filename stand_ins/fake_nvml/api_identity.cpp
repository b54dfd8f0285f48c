#include <fmt/format.h>

#include <cstring>
#include <string>

#include "fake_nvml/driver.h"

namespace muster::fake_nvml {
namespace {

// A multiprocessor's FP32 lanes. Source: the architectures' white papers; GA100 has 64, GA102 128.
std::uint32_t cores_per_multiprocessor(std::uint32_t compute_capability) {
  return compute_capability <= 80 ? 64 : 128;
}

template <std::size_t size>
void fill(std::array<char, size>& out, std::string_view text) {
  out.fill('\0');
  std::memcpy(out.data(), text.data(), std::min(text.size(), size - 1));
}

/// The version decides which names are filled: the newest both, _v2 the short one, and the first
/// version's struct ends before the subsystem's id.
enum class PciVersion { V1, V2, V3 };

int get_pci(Function function, DeviceHandle device, PciInfo* pci, PciVersion version) {
  return answer(function, device, [&](const Visit& visit) -> int {
    if (pci == nullptr) return kInvalidArgument;
    const auto& gpu = visit.spec();
    const auto rest = fmt::format("{:02X}:{:02X}.0", gpu.pci_bus, gpu.pci_device);
    fill(pci->bus_id_legacy, fmt::format("{:04X}:{}", gpu.pci_domain & 0xFFFF, rest));
    pci->domain = gpu.pci_domain;
    pci->bus = gpu.pci_bus;
    pci->device = gpu.pci_device;
    pci->pci_device_id = gpu.model->pci_device_id;
    if (version == PciVersion::V1) return kSuccess;
    pci->pci_subsystem_id = gpu.model->pci_device_id;
    if (version == PciVersion::V3)
      fill(pci->bus_id, fmt::format("{:08X}:{}", gpu.pci_domain, rest));
    return kSuccess;
  });
}

int get_number(Function function, DeviceHandle device, unsigned* out,
               std::uint32_t (*number)(const Visit&)) {
  return answer(function, device, [&](const Visit& visit) -> int {
    if (out == nullptr) return kInvalidArgument;
    *out = number(visit);
    return kSuccess;
  });
}

}  // namespace

FAKENVML_EXPORT int nvmlDeviceGetIndex(DeviceHandle device, unsigned* index) {
  return answer_gpu(Function::nvmlDeviceGetIndex, device, [&](const Visit& visit) -> int {
    if (index == nullptr) return kInvalidArgument;
    *index = visit.handle.gpu;
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetName(DeviceHandle device, char* name, unsigned length) {
  return answer(Function::nvmlDeviceGetName, device, [&](const Visit& visit) {
    if (visit.slice() == nullptr) return copy_text(visit.spec().name, name, length);
    return copy_text(visit.spec().name + " MIG " + visit.slice()->profile, name, length);
  });
}

FAKENVML_EXPORT int nvmlDeviceGetUUID(DeviceHandle device, char* uuid, unsigned length) {
  return answer(Function::nvmlDeviceGetUUID, device, [&](const Visit& visit) {
    return copy_text(visit.slice() != nullptr ? visit.slice()->uuid : visit.spec().uuid, uuid,
                     length);
  });
}

FAKENVML_EXPORT int nvmlDeviceGetSerial(DeviceHandle device, char* serial, unsigned length) {
  return answer_gpu(Function::nvmlDeviceGetSerial, device, [&](const Visit& visit) {
    return copy_text(visit.spec().serial, serial, length);
  });
}

FAKENVML_EXPORT int nvmlDeviceGetVbiosVersion(DeviceHandle device, char* version, unsigned length) {
  return answer_gpu(Function::nvmlDeviceGetVbiosVersion, device, [&](const Visit& visit) {
    return copy_text(visit.spec().vbios, version, length);
  });
}

FAKENVML_EXPORT int nvmlDeviceGetPciInfo(DeviceHandle device, PciInfo* pci) {
  return get_pci(Function::nvmlDeviceGetPciInfo, device, pci, PciVersion::V1);
}

FAKENVML_EXPORT int nvmlDeviceGetPciInfo_v2(DeviceHandle device, PciInfo* pci) {
  return get_pci(Function::nvmlDeviceGetPciInfo_v2, device, pci, PciVersion::V2);
}

FAKENVML_EXPORT int nvmlDeviceGetPciInfo_v3(DeviceHandle device, PciInfo* pci) {
  return get_pci(Function::nvmlDeviceGetPciInfo_v3, device, pci, PciVersion::V3);
}

FAKENVML_EXPORT int nvmlDeviceGetMinorNumber(DeviceHandle device, unsigned* number) {
  return get_number(Function::nvmlDeviceGetMinorNumber, device, number,
                    [](const Visit& visit) { return visit.spec().minor_number; });
}

FAKENVML_EXPORT int nvmlDeviceGetCudaComputeCapability(DeviceHandle device, int* major,
                                                       int* minor) {
  return answer(Function::nvmlDeviceGetCudaComputeCapability, device,
                [&](const Visit& visit) -> int {
                  if (major == nullptr || minor == nullptr) return kInvalidArgument;
                  *major = static_cast<int>(visit.spec().model->compute_capability / 10);
                  *minor = static_cast<int>(visit.spec().model->compute_capability % 10);
                  return kSuccess;
                });
}

FAKENVML_EXPORT int nvmlDeviceGetArchitecture(DeviceHandle device, unsigned* architecture) {
  // NVML_DEVICE_ARCH_VOLTA is 5, and the others follow in the order in which they came.
  return get_number(Function::nvmlDeviceGetArchitecture, device, architecture,
                    [](const Visit& visit) {
                      return 5 + static_cast<std::uint32_t>(visit.spec().model->architecture);
                    });
}

FAKENVML_EXPORT int nvmlDeviceGetNumGpuCores(DeviceHandle device, unsigned* cores) {
  return get_number(Function::nvmlDeviceGetNumGpuCores, device, cores, [](const Visit& visit) {
    const auto& model = *visit.spec().model;
    const auto count =
        visit.slice() != nullptr ? visit.slice()->multiprocessor_count : model.multiprocessor_count;
    return count * cores_per_multiprocessor(model.compute_capability);
  });
}

FAKENVML_EXPORT int nvmlDeviceGetPersistenceMode(DeviceHandle device, unsigned* mode) {
  return get_number(Function::nvmlDeviceGetPersistenceMode, device, mode,
                    [](const Visit& visit) -> std::uint32_t { return visit.spec().is_persistent; });
}

FAKENVML_EXPORT int nvmlDeviceGetComputeMode(DeviceHandle device, unsigned* mode) {
  return get_number(Function::nvmlDeviceGetComputeMode, device, mode,
                    [](const Visit& visit) { return visit.spec().compute_mode; });
}

FAKENVML_EXPORT int nvmlDeviceGetCpuAffinity(DeviceHandle device, unsigned size,
                                             unsigned long* cpus) {
  return answer(Function::nvmlDeviceGetCpuAffinity, device, [&](const Visit& visit) -> int {
    if (cpus == nullptr || size == 0) return kInvalidArgument;
    // 32 CPUs for each NUMA node: half a word of the set.
    for (unsigned i = 0; i < size; ++i) cpus[i] = 0;
    const unsigned word = visit.spec().numa_node / 2;
    if (word >= size) return kInsufficientSize;
    cpus[word] = 0xFFFFFFFFUL << (visit.spec().numa_node % 2 * 32);
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetMemoryAffinity(DeviceHandle device, unsigned size,
                                                unsigned long* nodes, unsigned scope) {
  return answer(Function::nvmlDeviceGetMemoryAffinity, device, [&](const Visit& visit) -> int {
    // A bit for each NUMA node; scope: 0 the node, 1 the socket, which are one here.
    constexpr unsigned kWordBits = 64;
    if (nodes == nullptr || size == 0 || scope > 1) return kInvalidArgument;
    for (unsigned i = 0; i < size; ++i) nodes[i] = 0;
    const unsigned word = visit.spec().numa_node / kWordBits;
    if (word >= size) return kInsufficientSize;
    nodes[word] = 1UL << (visit.spec().numa_node % kWordBits);
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetNumaNodeId(DeviceHandle device, unsigned* node) {
  // "Only applicable to platforms where the GPUs are NUMA nodes" (nvml.h 13.3).
  return answer(Function::nvmlDeviceGetNumaNodeId, device, [&](const Visit& visit) -> int {
    if (node == nullptr) return kInvalidArgument;
    if (!visit.spec().shares_host_memory) return kNotSupported;
    *node = visit.spec().numa_node;
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetAddressingMode(DeviceHandle device, AddressingMode* mode) {
  return answer(Function::nvmlDeviceGetAddressingMode, device, [&](const Visit& visit) -> int {
    if (mode == nullptr) return kInvalidArgument;
    if (mode->version != version_of<AddressingMode>(1)) return kArgumentVersionMismatch;
    mode->value = visit.spec().shares_host_memory ? 2 : 0;  // ATS, none
    return kSuccess;
  });
}

}  // namespace muster::fake_nvml
