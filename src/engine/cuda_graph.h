#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

namespace muster::engine {

/// Functions of torch's CUDAGraph by their names there, or a test's fakes of them. nullptr: this
/// torch has none.
struct CudaGraphCalls {
  using Pool = std::pair<unsigned long long, unsigned long long>;  // c10::MempoolId_t

  Pool (*make_pool)() = nullptr;
  void (*construct)(void*, bool keep_graph) = nullptr;
  void (*destroy)(void*) = nullptr;
  void (*capture_begin)(void*, Pool, int mode) = nullptr;
  /// Ends the capture, tells the allocator so, and then makes of it what can be replayed.
  void (*capture_end)(void*) = nullptr;
  Pool (*pool)(void*) = nullptr;  // throws where the allocator has not been told of the end
  void (*replay)(void*) = nullptr;

  /// Set for good by a capture that could not be begun, or of whose end torch's allocator was not
  /// told: torch 2.11's then believes that it goes on, and keeps a pointer to the graph, which is
  /// therefore never freed.
  std::atomic<bool> is_broken = false;

  /// Held from before the beginning of a capture until behind its end, and while a graph is
  /// destroyed. In both torch enters the graph into, or takes it out of, an unguarded set of the
  /// device's one random generator, and moves the generator into and out of its state for captures.
  /// Source: torch 2.11, aten/src/ATen/cuda/CUDAGeneratorImpl.h, CUDAGeneratorState.
  std::mutex one_at_a_time;

  bool are_all_there() const;
};

/// Work of a GPU's stream that is captured once and later given to the device in one call, which
/// takes microseconds where a launch of every kernel takes a millisecond for a small pass.
///
/// It is torch's own CUDAGraph, found by name in libtorch_cuda.so, so that no header of CUDA is
/// needed. It keeps the memory of what it captured: tensors that `work` has made stay where they
/// are, and what a replay computes lies in them.
///
/// Threads: one, but for the destructor; captures of several threads take turns. Errors: throw what
/// torch throws.
/// Source: torch 2.11, aten/src/ATen/cuda/CUDAGraph.h.
class CudaGraph {
 public:
  /// Names the memory of several graphs of one thread: what one has computed in, another may use,
  /// but for tensors that are still held.
  using Pool = CudaGraphCalls::Pool;
  static Pool make_pool();

  /// Whether this torch has it, no capture has left torch's allocator in a state that later ones
  /// would suffer from, and the thread has a stream of its own. The device is open.
  static bool is_available();

  /// Captures what `work` does on the calling thread's stream, which must not be the default one.
  /// Nothing is computed yet. `work` may not wait for the device, nor give its memory back. After
  /// an error the pool is of no more use; where it was want of memory, also of the driver's for
  /// what is replayed, a later capture may succeed.
  CudaGraph(Pool pool, const std::function<void()>& work);

  /// calls: outlives it.
  CudaGraph(CudaGraphCalls& calls, Pool pool, const std::function<void()>& work);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  /// Computes it again, on the current stream. Does not wait.
  void replay();

 private:
  void capture(Pool pool, const std::function<void()>& work);
  bool has_ended() const;
  void free();

  CudaGraphCalls& calls_;
  void* graph_;
};

}  // namespace muster::engine
