// What libtorch_cuda.so, or the stand-in, registers when it is opened (gpu.h): streams, waiting,
// the allocator. All of it is reached through torch's own interfaces for any device, so nothing
// here links CUDA.

#include "engine/gpu_device.h"

#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <mutex>

namespace muster::engine {
namespace {

c10::impl::VirtualGuardImpl guard_of(at::Device device) { return {device.type()}; }

c10::DeviceAllocator& allocator_of(at::Device device) {
  return *c10::getDeviceAllocator(device.type());
}

// Shared by those who capture, for whoever gives memory back.
std::shared_mutex& cached_memory_mutex() {
  static std::shared_mutex mutex;
  return mutex;
}

constexpr c10::DeviceIndex kVisible = 0;  // the one that is

}  // namespace

at::Device torch_device(DeviceKind kind) {
  if (kind == DeviceKind::Cuda) return {c10::DeviceType::CUDA, kVisible};
  if (kind == DeviceKind::Standin) return {c10::DeviceType::PrivateUse1, kVisible};
  return {c10::DeviceType::CPU};
}

void take_stream(at::Device device) {
  const auto guard = guard_of(device);
  guard.exchangeStream(guard.getStreamFromGlobalPool(device, /*isHighPriority=*/false));
}

bool has_own_stream(at::Device device) {
  const auto guard = guard_of(device);
  return guard.getStream(device) != guard.getDefaultStream(device);
}

void wait_for_stream(at::Device device) {
  const auto guard = guard_of(device);
  guard.synchronizeStream(guard.getStream(device));
}

at::Tensor to_host(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  auto host = at::empty(tensor.sizes(),
                        at::TensorOptions().dtype(tensor.scalar_type()).pinned_memory(true));
  host.copy_(tensor, /*non_blocking=*/true);
  wait_for_stream(tensor.device());
  return host;
}

void release_cached_memory(at::Device device) {
  if (device.is_cpu()) return;
  const std::unique_lock lock(cached_memory_mutex());
  allocator_of(device).emptyCache();
}

std::shared_lock<std::shared_mutex> keep_cached_memory() {
  return std::shared_lock(cached_memory_mutex());
}

DeviceMemoryUse device_memory_use(at::Device device) {
  const auto stats = allocator_of(device).getDeviceStats(device.index());
  const auto& all = stats.allocated_bytes[0];  // of every kind of allocation
  return {static_cast<std::uint64_t>(all.current), static_cast<std::uint64_t>(all.peak)};
}

void restart_peak(at::Device device) { allocator_of(device).resetPeakStats(device.index()); }

}  // namespace muster::engine
