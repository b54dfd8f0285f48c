#pragma once

#include <string>

#include "base/result.h"

namespace muster::engine {

/// Opens libtorch_cuda.so, once; torch registers its CUDA operators while it loads. Call before
/// anything asks torch about CUDA: torch keeps its first answer.
///
/// Errors: Unsupported, with the reason: no such library, or no device that it can use.
/// Threads: any.
Status open_cuda();

/// Gives torch's allocator back the workspaces of cuBLAS, of all threads and streams: torch keeps
/// one for each pair of both that has made a product. Those that make products again get new ones.
/// Nothing may be computed meanwhile. Nothing before `open_cuda`.
/// Source: torch 2.11, aten/src/ATen/cuda/CUDAContextLight.h, clearCublasWorkspaces.
void clear_cublas_workspaces();

/// The visible device's model and the driver's CUDA version, "NVIDIA H200/13.0": its part of the
/// equality class; "none" without one. Variables that change which products are computed, as
/// NVIDIA_TF32_OVERRIDE, are part of it where they are set.
std::string cuda_class();

}  // namespace muster::engine
