#pragma once

#include <functional>
#include <utility>

namespace muster::engine {

/// Work of a GPU's stream that is captured once and later given to the device in one call, which
/// takes microseconds where a launch of every kernel takes a millisecond for a small pass.
///
/// It is torch's own CUDAGraph, found by name in libtorch_cuda.so, so that no header of CUDA is
/// needed. It keeps the memory of what it captured: tensors that `work` has made stay where they
/// are, and what a replay computes lies in them.
///
/// Threads: one, but for the destructor. Errors: throw what torch throws.
/// Source: torch 2.11, aten/src/ATen/cuda/CUDAGraph.h.
class CudaGraph {
 public:
  /// Names the memory of several graphs of one thread: what one has computed in, another may use,
  /// but for tensors that are still held.
  using Pool = std::pair<unsigned long long, unsigned long long>;
  static Pool make_pool();

  /// Whether this torch has it, no capture has left torch's allocator in a state that later ones
  /// would suffer from, and the thread has a stream of its own. The device is open.
  static bool is_available();

  /// Captures what `work` does on the calling thread's stream, which must not be the default one.
  /// Nothing is computed yet. `work` may not wait for the device. After an error the pool is of no
  /// more use.
  CudaGraph(Pool pool, const std::function<void()>& work);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  /// Computes it again, on the current stream. Does not wait.
  void replay();

 private:
  void* graph_;
};

}  // namespace muster::engine
