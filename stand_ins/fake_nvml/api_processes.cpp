#include <limits>
#include <vector>

#include "fake_nvml/driver.h"
#include "fake_nvml/memory_use.h"

namespace muster::fake_nvml {
namespace {

constexpr std::uint64_t kNotKnown = std::numeric_limits<std::uint64_t>::max();

std::vector<const FakeProcess*> processes_of(const Visit& visit, ProcessKind kind) {
  std::vector<const FakeProcess*> found;
  for (const auto& process : visit.spec().processes) {
    if (process.kind == kind && is_there(process, visit)) found.push_back(&process);
  }
  return found;
}

void write(const FakeProcess& process, ProcessInfoV1& entry) {
  entry.pid = process.pid;
  entry.used_gpu_memory = process.memory_bytes.value_or(kNotKnown);
}

void write(const FakeProcess& process, ProcessInfoV2& entry) {
  entry = {process.pid, process.memory_bytes.value_or(kNotKnown), process.gpu_instance,
           process.compute_instance};
}

void write(const FakeProcess& process, ProcessInfo32& entry) {
  entry = {process.pid, process.memory_bytes.value_or(kNotKnown), process.gpu_instance,
           process.compute_instance, 0};
}

template <typename Entry>
int list(const Visit& visit, ProcessKind kind, unsigned* count, void* entries) {
  if (count == nullptr) return kInvalidArgument;
  const auto found = processes_of(visit, kind);
  const unsigned room = *count;
  *count = static_cast<unsigned>(found.size());
  if (found.size() > room) return kInsufficientSize;
  if (entries == nullptr && !found.empty()) return kInvalidArgument;
  for (std::size_t i = 0; i < found.size(); ++i) {
    write(*found[i], static_cast<Entry*>(entries)[i]);
  }
  return kSuccess;
}

int list_v1(Function function, DeviceHandle device, ProcessKind kind, unsigned* count,
            ProcessInfoV1* entries) {
  return answer(function, device, [&](const Visit& visit) {
    return list<ProcessInfoV1>(visit, kind, count, entries);
  });
}

int list_v2(Function function, DeviceHandle device, ProcessKind kind, unsigned* count,
            ProcessInfoV2* entries) {
  return answer(function, device, [&](const Visit& visit) {
    return list<ProcessInfoV2>(visit, kind, count, entries);
  });
}

/// 24 bytes an entry, or the 32 of some drivers of the 535 series.
int list_v3(Function function, DeviceHandle device, ProcessKind kind, unsigned* count,
            ProcessInfoV2* entries) {
  return answer(function, device, [&](const Visit& visit) {
    return visit.driver.scenario().process_entry_bytes == sizeof(ProcessInfo32)
               ? list<ProcessInfo32>(visit, kind, count, entries)
               : list<ProcessInfoV2>(visit, kind, count, entries);
  });
}

}  // namespace

FAKENVML_EXPORT int nvmlDeviceGetComputeRunningProcesses(DeviceHandle device, unsigned* count,
                                                         ProcessInfoV1* entries) {
  return list_v1(Function::nvmlDeviceGetComputeRunningProcesses, device, ProcessKind::Compute,
                 count, entries);
}

FAKENVML_EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(DeviceHandle device, unsigned* count,
                                                            ProcessInfoV2* entries) {
  return list_v2(Function::nvmlDeviceGetComputeRunningProcesses_v2, device, ProcessKind::Compute,
                 count, entries);
}

FAKENVML_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(DeviceHandle device, unsigned* count,
                                                            ProcessInfoV2* entries) {
  return list_v3(Function::nvmlDeviceGetComputeRunningProcesses_v3, device, ProcessKind::Compute,
                 count, entries);
}

FAKENVML_EXPORT int nvmlDeviceGetGraphicsRunningProcesses(DeviceHandle device, unsigned* count,
                                                          ProcessInfoV1* entries) {
  return list_v1(Function::nvmlDeviceGetGraphicsRunningProcesses, device, ProcessKind::Graphics,
                 count, entries);
}

FAKENVML_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v2(DeviceHandle device, unsigned* count,
                                                             ProcessInfoV2* entries) {
  return list_v2(Function::nvmlDeviceGetGraphicsRunningProcesses_v2, device, ProcessKind::Graphics,
                 count, entries);
}

FAKENVML_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(DeviceHandle device, unsigned* count,
                                                             ProcessInfoV2* entries) {
  return list_v3(Function::nvmlDeviceGetGraphicsRunningProcesses_v3, device, ProcessKind::Graphics,
                 count, entries);
}

FAKENVML_EXPORT int nvmlDeviceGetMPSComputeRunningProcesses(DeviceHandle device, unsigned* count,
                                                            ProcessInfoV1* entries) {
  return list_v1(Function::nvmlDeviceGetMPSComputeRunningProcesses, device, ProcessKind::Mps, count,
                 entries);
}

FAKENVML_EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v2(DeviceHandle device, unsigned* count,
                                                               ProcessInfoV2* entries) {
  return list_v2(Function::nvmlDeviceGetMPSComputeRunningProcesses_v2, device, ProcessKind::Mps,
                 count, entries);
}

FAKENVML_EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(DeviceHandle device, unsigned* count,
                                                               ProcessInfoV2* entries) {
  return list_v3(Function::nvmlDeviceGetMPSComputeRunningProcesses_v3, device, ProcessKind::Mps,
                 count, entries);
}

FAKENVML_EXPORT int nvmlDeviceGetRunningProcessDetailList(DeviceHandle device,
                                                          ProcessDetailList* details) {
  return answer(Function::nvmlDeviceGetRunningProcessDetailList, device,
                [&](const Visit& visit) -> int {
                  if (details == nullptr || details->mode > 2) return kInvalidArgument;
                  if (details->version != version_of<ProcessDetailList>(1)) {
                    return kArgumentVersionMismatch;
                  }
                  return list<ProcessInfo32>(visit, static_cast<ProcessKind>(details->mode),
                                             &details->entry_count, details->entries);
                });
}

FAKENVML_EXPORT int nvmlDeviceGetConfComputeMemSizeInfo(DeviceHandle device,
                                                        ConfComputeMemory* memory) {
  return answer(Function::nvmlDeviceGetConfComputeMemSizeInfo, device,
                [&](const Visit& visit) -> int {
                  if (memory == nullptr) return kInvalidArgument;
                  if (visit.spec().model->architecture < Architecture::Hopper) return kNotSupported;
                  *memory = {0, visit.spec().memory_bytes >> 10};  // confidential computing is off
                  return kSuccess;
                });
}

}  // namespace muster::fake_nvml
