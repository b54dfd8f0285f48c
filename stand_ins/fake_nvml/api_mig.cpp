#include "fake_nvml/driver.h"

namespace muster::fake_nvml {
namespace {

constexpr unsigned kSlicesMax = 7;

bool can_mig(const Model& model) {
  return model.compute_capability >= 80 && model.compute_capability % 10 == 0;
}

int get_attributes(Function function, DeviceHandle device, DeviceAttributes* out) {
  return answer(function, device, [&](const Visit& visit) -> int {
    if (out == nullptr) return kInvalidArgument;
    const auto* slice = visit.slice();
    if (slice == nullptr) return kNotSupported;  // "MIG device handles only"
    *out = {};
    out->multiprocessor_count = slice->multiprocessor_count;
    out->copy_engine_count = slice->slices;
    out->gpu_instance_slice_count = slice->slices;
    out->compute_instance_slice_count = slice->slices;
    out->memory_size_mib = slice->memory_bytes >> 20;
    return kSuccess;
  });
}

/// An answer about a slice alone.
int about_slice(Function function, DeviceHandle device, unsigned* out,
                std::uint32_t MigSlice::*member) {
  return answer(function, device, [&](const Visit& visit) -> int {
    if (out == nullptr) return kInvalidArgument;
    if (visit.slice() == nullptr) return kNotSupported;
    *out = visit.slice()->*member;
    return kSuccess;
  });
}

}  // namespace

FAKENVML_EXPORT int nvmlDeviceGetMigMode(DeviceHandle device, unsigned* current,
                                         unsigned* pending) {
  return answer_gpu(Function::nvmlDeviceGetMigMode, device, [&](const Visit& visit) -> int {
    if (current == nullptr || pending == nullptr) return kInvalidArgument;
    if (!can_mig(*visit.spec().model)) return kNotSupported;
    *current = visit.spec().mig.has_value();
    *pending = *current;
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceIsMigDeviceHandle(DeviceHandle device, unsigned* is_slice) {
  return answer(Function::nvmlDeviceIsMigDeviceHandle, device, [&](const Visit& visit) -> int {
    if (is_slice == nullptr) return kInvalidArgument;
    *is_slice = visit.slice() != nullptr;
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetMaxMigDeviceCount(DeviceHandle device, unsigned* count) {
  return answer_gpu(Function::nvmlDeviceGetMaxMigDeviceCount, device,
                    [&](const Visit& visit) -> int {
                      if (count == nullptr) return kInvalidArgument;
                      // 0 where MIG is not supported or off.
                      *count = visit.spec().mig ? kSlicesMax : 0;
                      return kSuccess;
                    });
}

FAKENVML_EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(DeviceHandle device, unsigned index,
                                                        DeviceHandle* slice) {
  return answer_gpu(Function::nvmlDeviceGetMigDeviceHandleByIndex, device,
                    [&](const Visit& visit) -> int {
                      if (slice == nullptr || index >= kSlicesMax) return kInvalidArgument;
                      if (!visit.spec().mig) return kNotSupported;
                      for (const auto& own : *visit.spec().mig) {
                        if (own.index != index) continue;
                        *slice = visit.driver.handle_of(visit.handle.gpu, own);
                        return kSuccess;
                      }
                      return kNotFound;
                    });
}

FAKENVML_EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(DeviceHandle slice,
                                                                 DeviceHandle* device) {
  return answer(Function::nvmlDeviceGetDeviceHandleFromMigDeviceHandle, slice,
                [&](const Visit& visit) -> int {
                  if (device == nullptr || visit.slice() == nullptr) return kInvalidArgument;
                  *device = visit.driver.handle_of(visit.handle.gpu);
                  return kSuccess;
                });
}

FAKENVML_EXPORT int nvmlDeviceGetGpuInstanceId(DeviceHandle device, unsigned* id) {
  return about_slice(Function::nvmlDeviceGetGpuInstanceId, device, id, &MigSlice::gpu_instance);
}

FAKENVML_EXPORT int nvmlDeviceGetComputeInstanceId(DeviceHandle device, unsigned* id) {
  return about_slice(Function::nvmlDeviceGetComputeInstanceId, device, id,
                     &MigSlice::compute_instance);
}

FAKENVML_EXPORT int nvmlDeviceGetAttributes(DeviceHandle device, DeviceAttributes* attributes) {
  return get_attributes(Function::nvmlDeviceGetAttributes, device, attributes);
}

FAKENVML_EXPORT int nvmlDeviceGetAttributes_v2(DeviceHandle device, DeviceAttributes* attributes) {
  return get_attributes(Function::nvmlDeviceGetAttributes_v2, device, attributes);
}

}  // namespace muster::fake_nvml
