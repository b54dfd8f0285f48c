#pragma once

#include <optional>
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

/// What decides which of the libraries' kernels a device gets, and so the order of sums.
struct CudaDeviceFacts {
  std::string name;              // "NVIDIA H200"
  int driver_version = 0;        // of CUDA: 13000 is 13.0
  int multiprocessor_count = 0;  // that this process has
};

/// "NVIDIA H200/132 SMs/13.0". Cards of one name may have more multiprocessors or fewer (the
/// GeForce RTX 3080 has 68 or 70), and MPS may leave a process some of them: cuBLAS cuts a product
/// by how many there are. Variables that change which products are computed, as
/// NVIDIA_TF32_OVERRIDE, are added where they are set.
std::string cuda_class_of(const CudaDeviceFacts& facts);

/// The visible device, as the driver tells of it.
///
/// Errors: Unavailable, with the driver's own words: there is no driver, or it cannot open the GPU,
/// which is lost or not ready yet ("system not yet initialized (CUDA error 802)").
Result<CudaDeviceFacts> find_cuda_device();

/// The class of the visible device: its part of the equality class; "none" without one.
std::string cuda_class();

/// With PYTORCH_TUNABLEOP_ENABLED=1 torch times the kernels that a product may have and takes the
/// fastest, so that chance decides on the order of sums and no name of a class can tell it. Takes
/// the variable out of this process's environment; "NAME=value" where it had asked for that.
/// Threads: while the process has one alone, before torch's CUDA part is opened.
/// Source: torch 2.11, aten/src/ATen/cuda/tunable/README.md.
std::optional<std::string> drop_timed_kernels();

}  // namespace muster::engine
