// What libtorch_cuda.so registers when it is opened (cuda.h): streams, waiting, the allocator. All
// of it is reached through torch's own interfaces for any device, so nothing here links CUDA.

#include "engine/cuda_device.h"

#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "engine/cuda.h"
#include "engine/guard.h"

namespace muster::engine {
namespace {

c10::impl::VirtualGuardImpl cuda_guard() { return {c10::DeviceType::CUDA}; }

constexpr c10::DeviceIndex kDevice = 0;  // the one that is visible

}  // namespace

void take_stream() {
  const auto guard = cuda_guard();
  const c10::Device device(c10::DeviceType::CUDA, kDevice);
  guard.exchangeStream(guard.getStreamFromGlobalPool(device, /*isHighPriority=*/false));
}

bool has_own_stream() {
  const auto guard = cuda_guard();
  const c10::Device device(c10::DeviceType::CUDA, kDevice);
  return guard.getStream(device) != guard.getDefaultStream(device);
}

void wait_for_stream() {
  const auto guard = cuda_guard();
  guard.synchronizeStream(guard.getStream({c10::DeviceType::CUDA, kDevice}));
}

bool is_cuda_usable() {
  const auto waited = guarded([]() -> Status {
    wait_for_stream();
    return Done{};
  });
  // What is refused while a graph is captured is no fault of the device.
  return waited || waited.error().message.find("captur") != std::string::npos;
}

at::Tensor to_host(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return tensor;
  auto host = at::empty(tensor.sizes(),
                        at::TensorOptions().dtype(tensor.scalar_type()).pinned_memory(true));
  host.copy_(tensor, /*non_blocking=*/true);
  wait_for_stream();
  return host;
}

void release_cached_memory() {
  if (open_cuda()) c10::getDeviceAllocator(c10::DeviceType::CUDA)->emptyCache();
}

DeviceMemoryUse device_memory_use() {
  const auto stats = c10::getDeviceAllocator(c10::DeviceType::CUDA)->getDeviceStats(kDevice);
  const auto& all = stats.allocated_bytes[0];  // of every kind of allocation
  return {static_cast<std::uint64_t>(all.current), static_cast<std::uint64_t>(all.peak)};
}

void restart_peak() { c10::getDeviceAllocator(c10::DeviceType::CUDA)->resetPeakStats(kDevice); }

}  // namespace muster::engine
