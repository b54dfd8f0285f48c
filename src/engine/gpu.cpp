#include "engine/gpu.h"

#include <fmt/format.h>

#include "engine/cuda.h"
#include "engine/gpu_device.h"
#include "engine/guard.h"
#include "engine/standin.h"

namespace muster::engine {

Status open_gpu(DeviceKind kind) {
  if (kind == DeviceKind::Cuda) return open_cuda();
  if (kind == DeviceKind::Standin) return open_standin();
  return Error{ErrorKind::Unsupported,
               fmt::format("this kind of device is no GPU: {}", device_kind_name(kind))};
}

bool is_gpu_usable(DeviceKind kind) {
  const auto waited = guarded([&]() -> Status {
    wait_for_stream(torch_device(kind));
    return Done{};
  });
  // What is refused while a graph is captured is no fault of the device.
  return waited || waited.error().message.find("captur") != std::string::npos;
}

void release_workspaces(DeviceKind kind) {
  (void)guarded([&]() -> Status {
    const auto device = torch_device(kind);
    wait_for_stream(device);
    if (kind == DeviceKind::Cuda) clear_cublas_workspaces();
    release_cached_memory(device);
    return Done{};
  });
}

}  // namespace muster::engine
