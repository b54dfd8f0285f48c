#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <shared_mutex>

#include "spec/device.h"

namespace muster::engine {

/// The one GPU that is visible, or its stand-in, through what its library has registered with torch
/// (gpu.h): no header of CUDA is needed, and the same code runs on both. All but `torch_device`
/// want it open; `to_host` and `release_cached_memory` do not for what is on the CPU.
///
/// Threads: any. Errors: throw what torch throws.

/// The device of this kind that the process has, as torch names it.
at::Device torch_device(DeviceKind kind);

/// Gives the calling thread a stream of its own, so that what it has computed on the device does
/// not wait for other threads.
void take_stream(at::Device device);

/// Whether the calling thread has one.
bool has_own_stream(at::Device device);

/// Waits for what the calling thread's stream was given. Never for the whole device: that would
/// break a graph which another lane is capturing.
void wait_for_stream(at::Device device);

/// The tensor in memory of the host, when the thread's stream has computed it; itself where it is
/// there already. From a device through pinned memory.
at::Tensor to_host(const at::Tensor& tensor);

/// Gives memory that the allocator keeps for later back to the device, once no lane captures a
/// graph: it is freed by calls that wait for all that a device does. Nothing on a CPU.
void release_cached_memory(at::Device device);

/// While it is held nothing is given back. Several may hold one; who does must not give back. It is
/// taken before the locks of torch's allocator.
[[nodiscard]] std::shared_lock<std::shared_mutex> keep_cached_memory();

/// Bytes of the device that torch's allocator has given out: those of live tensors, and the most
/// since the last call of `restart_peak`.
struct DeviceMemoryUse {
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;
};
DeviceMemoryUse device_memory_use(at::Device device);
void restart_peak(at::Device device);

}  // namespace muster::engine
