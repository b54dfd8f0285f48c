// CUDAGraph is a plain class of one library version, and muster wants exactly this version of
// torch; its functions are found by their mangled names. Where one is missing there are no
// graphs, and passes are launched kernel by kernel.

#include "engine/cuda_graph.h"

#include <dlfcn.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <new>

#include "engine/gpu_device.h"

namespace muster::engine {
namespace {

// sizeof(at::cuda::CUDAGraph) is 104 in torch 2.11; room for several times that.
constexpr std::size_t kSize = 512;
constexpr std::align_val_t kAlignment{16};

// cudaStreamCaptureModeThreadLocal: other lanes may go on allocating. Source: CUDA 13.0 runtime
// API.
constexpr int kThreadLocal = 1;

template <typename Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

std::unique_ptr<CudaGraphCalls> find_calls() {
  auto calls = std::make_unique<CudaGraphCalls>();
  find(calls->make_pool, "_ZN2at4cuda17graph_pool_handleEv");
  find(calls->construct, "_ZN2at4cuda9CUDAGraphC1Eb");
  find(calls->destroy, "_ZN2at4cuda9CUDAGraphD1Ev");
  find(calls->capture_begin,
       "_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode");
  find(calls->capture_end, "_ZN2at4cuda9CUDAGraph11capture_endEv");
  find(calls->pool, "_ZN2at4cuda9CUDAGraph4poolEv");
  find(calls->replay, "_ZN2at4cuda9CUDAGraph6replayEv");
  return calls;
}

CudaGraphCalls& torch_calls() {
  static const std::unique_ptr<CudaGraphCalls> found = find_calls();
  return *found;
}

}  // namespace

bool CudaGraphCalls::are_all_there() const {
  return make_pool != nullptr && construct != nullptr && destroy != nullptr &&
         capture_begin != nullptr && capture_end != nullptr && pool != nullptr && replay != nullptr;
}

bool CudaGraph::is_available() {
  const auto& calls = torch_calls();
  return !calls.is_broken && calls.are_all_there() &&
         has_own_stream(torch_device(DeviceKind::Cuda));
}

CudaGraph::Pool CudaGraph::make_pool() { return torch_calls().make_pool(); }

CudaGraph::CudaGraph(Pool pool, const std::function<void()>& work)
    : CudaGraph(torch_calls(), pool, work) {}

// Memory that is given back meanwhile would be freed by a call that no capture may see.
CudaGraph::CudaGraph(CudaGraphCalls& calls, Pool pool, const std::function<void()>& work)
    : calls_(calls), graph_(::operator new(kSize, kAlignment)) {
  const auto kept = keep_cached_memory();
  const std::lock_guard alone(calls_.one_at_a_time);
  capture(pool, work);
}

void CudaGraph::capture(Pool pool, const std::function<void()>& work) {
  calls_.construct(graph_, /*keep_graph=*/false);
  try {
    calls_.capture_begin(graph_, pool, kThreadLocal);
  } catch (...) {
    calls_.is_broken = true;
    throw;
  }
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  // The stream must leave the capture, whatever becomes of it. What `work` ran into goes first.
  try {
    calls_.capture_end(graph_);
  } catch (...) {
    if (!failure) failure = std::current_exception();
  }
  if (!failure) return;
  if (has_ended()) {
    free();
  } else {
    calls_.is_broken = true;
  }
  std::rethrow_exception(failure);
}

bool CudaGraph::has_ended() const {
  try {
    (void)calls_.pool(graph_);
  } catch (...) {
    return false;
  }
  return true;
}

void CudaGraph::free() {
  calls_.destroy(graph_);
  ::operator delete(graph_, kAlignment);
}

CudaGraph::~CudaGraph() {
  const std::lock_guard alone(calls_.one_at_a_time);
  free();
}

void CudaGraph::replay() { calls_.replay(graph_); }

}  // namespace muster::engine
