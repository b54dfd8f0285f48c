#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace muster::engine {

/// The one CUDA device that is visible, through what libtorch_cuda.so has registered with torch: no
/// header of CUDA is needed. All but `to_host` and `release_cached_memory` want it open (cuda.h).
///
/// Threads: any. Errors: throw what torch throws.

/// Gives the calling thread a stream of its own, so that what it has computed on the device does
/// not wait for other threads. The device is open.
void take_stream();

/// Whether the calling thread has one.
bool has_own_stream();

/// Waits for what the calling thread's stream was given. Never for the whole device: that would
/// break a graph which another lane is capturing.
void wait_for_stream();

/// The tensor in memory of the host, when the thread's stream has computed it; itself where it is
/// there already. From a GPU through pinned memory.
at::Tensor to_host(const at::Tensor& tensor);

/// Gives memory that the allocator keeps for later back to the device. Nothing without one.
void release_cached_memory();

/// Bytes of the device that torch's allocator has given out: those of live tensors, and the most
/// since the last call of `restart_peak`.
struct DeviceMemoryUse {
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;
};
DeviceMemoryUse device_memory_use();
void restart_peak();

}  // namespace muster::engine
