#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace muster::engine {

/// Whether the error says that memory was short. torch has an exception of its own only for its
/// allocator of a GPU; the one of the host, cuBLAS and CUDA's own allocations (a kernel that is
/// loaded at its first use) tell it by text.
///
/// Source: torch 2.11, CUDABlas.cpp (_cublasGetErrorEnum), c10/core/impl/alloc_cpu.cpp; CUDA 13.0,
/// cudaErrorMemoryAllocation.
inline bool is_out_of_memory(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         text.find("CUBLAS_STATUS_ALLOC_FAILED") != std::string_view::npos ||
         text.find("CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate") !=
             std::string_view::npos ||
         text.find("CUDA error: out of memory") != std::string_view::npos ||
         text.find("DefaultCPUAllocator: can't allocate memory") != std::string_view::npos;
}

/// The seam between torch, which throws, and the rest of the program, which does not.
/// Every public function of `engine/` that can fail passes through here exactly once.
///
/// Errors: ResourceExhausted for memory of either kind, Unsupported for what torch does not have on
/// this device, Internal for any other exception.
template <typename Work>
auto guarded(Work&& work) -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::ResourceExhausted, "the machine is out of memory"};
  } catch (const c10::NotImplementedError& error) {
    return Error{ErrorKind::Unsupported, error.what_without_backtrace()};
  } catch (const c10::Error& error) {
    return Error{is_out_of_memory(error) ? ErrorKind::ResourceExhausted : ErrorKind::Internal,
                 error.what_without_backtrace()};
  } catch (const std::exception& error) {
    return Error{ErrorKind::Internal, error.what()};
  }
}

}  // namespace muster::engine
