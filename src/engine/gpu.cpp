// One front for CUDA and its stand-in. What torch is told about products comes before either is
// opened, so that nothing is ever computed otherwise.

#include "engine/gpu.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <mutex>

#include "engine/cuda.h"
#include "engine/gpu_device.h"
#include "engine/guard.h"
#include "engine/standin.h"

namespace muster::engine {
namespace {

// A product of few rows and many inputs is cut along its inputs. torch lets cuBLAS add the parts in
// the 16 bits of the result, which in fp16 end at 65,504.
// Source: torch 2.11, ATen/Context.h, CuBLASReductionOption; CUDABlas.cpp makes of it
// CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION and CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE.
void add_parts_of_products_in_float32() {
  at::globalContext().setAllowFP16ReductionCuBLAS(/*allow_reduced_precision=*/false);
  at::globalContext().setAllowBF16ReductionCuBLAS(/*allow_reduced_precision=*/false);
}

}  // namespace

Status open_gpu(DeviceKind kind) {
  static std::once_flag once;
  std::call_once(once, add_parts_of_products_in_float32);
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
