// torch's CUDA part is opened at run time, so one program serves machines with and without a GPU.
// The load happens once in a process and its outcome is kept, a failure too: torch remembers what
// it found. The class of the hardware comes from the driver alone, so it can be asked for without
// loading torch's gigabyte of kernels.

#include "engine/cuda.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "engine/guard.h"

namespace muster::engine {
namespace {

Status load_cuda() {
  // Never closed: torch keeps pointers into it until the process ends.
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("torch's CUDA part cannot be loaded: {}", ::dlerror())};
  }
  return guarded([]() -> Status {
    if (at::detail::getCUDAHooks().hasCUDA() && at::detail::getCUDAHooks().getNumGPUs() > 0) {
      return Done{};
    }
    return Error{ErrorKind::Unsupported, "torch's CUDA part is loaded but finds no device"};
  });
}

// What changes which products are computed, and in which float32: on Blackwell cuBLAS makes one of
// nine products of bfloat16 where it is told to.
// Source: cuBLAS 13.0, "Environment variables" and "Floating Point Emulation"; torch 2.11,
// docs/source/notes/cuda.rst, ATen/Context.h and CUDABlas.cpp.
constexpr std::array<const char*, 9> kProductSettings{"NVIDIA_TF32_OVERRIDE",
                                                      "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
                                                      "CUBLAS_EMULATE_SINGLE_PRECISION",
                                                      "CUBLAS_EMULATION_STRATEGY",
                                                      "CUBLAS_WORKSPACE_CONFIG",
                                                      "CUBLASLT_WORKSPACE_SIZE",
                                                      "TORCH_CUBLASLT_UNIFIED_WORKSPACE",
                                                      "TORCH_BLAS_PREFER_CUBLASLT",
                                                      "DISABLE_ADDMM_CUDA_LT"};

constexpr const char* kTimedKernels = "PYTORCH_TUNABLEOP_ENABLED";

// CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT. Source: CUDA driver API 13.0, "Data types used by CUDA
// driver".
constexpr int kMultiprocessorCount = 16;

// A function of the driver's library, by name: the driver is not there at build time.
template <typename Function>
Function driver_function(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

}  // namespace

Status open_cuda() {
  static const Status outcome = load_cuda();
  return outcome;
}

void clear_cublas_workspaces() {
  using Clear = void (*)();
  const auto clear =
      reinterpret_cast<Clear>(::dlsym(RTLD_DEFAULT, "_ZN2at4cuda21clearCublasWorkspacesEv"));
  if (clear != nullptr) clear();
}

std::string cuda_class_of(const CudaDeviceFacts& facts) {
  auto text = fmt::format("{}/{} SMs/{}.{}", facts.name, facts.multiprocessor_count,
                          facts.driver_version / 1000, facts.driver_version % 1000 / 10);
  for (const auto* setting : kProductSettings) {
    const char* value = std::getenv(setting);
    if (value != nullptr) text += fmt::format("/{}={}", setting, value);
  }
  return text;
}

std::optional<std::string> drop_timed_kernels() {
  const char* value = std::getenv(kTimedKernels);
  if (value == nullptr) return std::nullopt;
  const std::string set = value;
  ::unsetenv(kTimedKernels);
  if (set.empty() || set == "0") return std::nullopt;
  return fmt::format("{}={}", kTimedKernels, set);
}

// Source: CUDA driver API 13.0, "Error Handling", "Initialization", "Version Management", "Device
// Management".
Result<CudaDeviceFacts> find_cuda_device() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{ErrorKind::Unavailable, ::dlerror()};
  const auto words_of = driver_function<int (*)(int, const char**)>(library, "cuGetErrorString");
  const auto initialise = driver_function<int (*)(unsigned)>(library, "cuInit");
  const auto version_of = driver_function<int (*)(int*)>(library, "cuDriverGetVersion");
  const auto name_of = driver_function<int (*)(char*, int, int)>(library, "cuDeviceGetName");
  const auto attribute_of =
      driver_function<int (*)(int*, int, int)>(library, "cuDeviceGetAttribute");
  if (words_of == nullptr || initialise == nullptr || version_of == nullptr || name_of == nullptr ||
      attribute_of == nullptr) {
    return Error{ErrorKind::Unavailable, "libcuda.so.1 is not the library of a driver"};
  }
  CudaDeviceFacts facts;
  char name[256] = "";
  int code = initialise(0);
  if (code == 0) code = version_of(&facts.driver_version);
  if (code == 0) code = name_of(name, sizeof name, 0);
  if (code == 0) code = attribute_of(&facts.multiprocessor_count, kMultiprocessorCount, 0);
  if (code != 0) {
    const char* words = nullptr;
    const bool is_known = words_of(code, &words) == 0 && words != nullptr;
    return Error{ErrorKind::Unavailable,
                 fmt::format("{} (CUDA error {})", is_known ? words : "unknown error", code)};
  }
  facts.name = name;
  return facts;
}

std::string cuda_class() {
  const auto facts = find_cuda_device();
  return facts ? cuda_class_of(*facts) : "none";
}

}  // namespace muster::engine
