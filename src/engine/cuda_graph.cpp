// CUDAGraph is a plain class of one library version, and muster wants exactly this version of
// torch; its functions are found by their mangled names. Where one is missing there are no
// graphs, and passes are launched kernel by kernel.

#include "engine/cuda_graph.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
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

struct Functions {
  CudaGraph::Pool (*make_pool)() = nullptr;  // the pair is c10::MempoolId_t
  void (*construct)(void*, bool keep_graph) = nullptr;
  void (*destroy)(void*) = nullptr;
  void (*capture_begin)(void*, CudaGraph::Pool, int mode) = nullptr;
  void (*capture_end)(void*) = nullptr;
  void (*replay)(void*) = nullptr;

  bool are_all_there() const {
    return make_pool != nullptr && construct != nullptr && destroy != nullptr &&
           capture_begin != nullptr && capture_end != nullptr && replay != nullptr;
  }
};

template <typename Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

Functions find_functions() {
  Functions functions;
  find(functions.make_pool, "_ZN2at4cuda17graph_pool_handleEv");
  find(functions.construct, "_ZN2at4cuda9CUDAGraphC1Eb");
  find(functions.destroy, "_ZN2at4cuda9CUDAGraphD1Ev");
  find(functions.capture_begin,
       "_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode");
  find(functions.capture_end, "_ZN2at4cuda9CUDAGraph11capture_endEv");
  find(functions.replay, "_ZN2at4cuda9CUDAGraph6replayEv");
  return functions;
}

// Set for good by a capture that could not be begun or ended: torch 2.11's allocator then believes
// that it goes on, and keeps a pointer to the graph, which is therefore never freed.
std::atomic<bool> is_broken = false;

const Functions& functions() {
  static const Functions found = find_functions();
  return found;
}

template <typename Call>
void run_or_break(Call&& call) {
  try {
    call();
  } catch (...) {
    is_broken = true;
    throw;
  }
}

}  // namespace

bool CudaGraph::is_available() {
  return !is_broken && functions().are_all_there() &&
         has_own_stream(torch_device(DeviceKind::Cuda));
}

CudaGraph::Pool CudaGraph::make_pool() { return functions().make_pool(); }

CudaGraph::CudaGraph(Pool pool, const std::function<void()>& work)
    : graph_(::operator new(kSize, kAlignment)) {
  functions().construct(graph_, /*keep_graph=*/false);
  run_or_break([&] { functions().capture_begin(graph_, pool, kThreadLocal); });
  try {
    work();
  } catch (...) {
    // The stream must leave the capture, whatever becomes of it.
    run_or_break([&] { functions().capture_end(graph_); });
    functions().destroy(graph_);
    ::operator delete(graph_, kAlignment);
    throw;
  }
  run_or_break([&] { functions().capture_end(graph_); });
}

CudaGraph::~CudaGraph() {
  functions().destroy(graph_);
  ::operator delete(graph_, kAlignment);
}

void CudaGraph::replay() { functions().replay(graph_); }

}  // namespace muster::engine
