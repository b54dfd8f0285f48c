// Decides when two devices' vectors count as equal bit for bit. The class names everything that may
// change the order of a sum: instruction sets, cache sizes that oneDNN blocks by, its switches,
// torch's version and ours. A class that is too narrow costs cache hits; one that is too wide mixes
// different bits, so in doubt it is narrow. A lane is one thread, because a sum that is split among
// threads depends on how many there are.

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/cpu/Utils.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <pmmintrin.h>
#include <torch/headeronly/version.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "engine/cuda.h"
#include "engine/encoder.h"
#include "engine/gpu_device.h"
#include "engine/guard.h"
#include "engine/ops/amx_tiles.h"
#include "engine/ops/kernels.h"

namespace muster::engine {
namespace {

// Raise it with every change that can move a bit of a result: vectors of different versions are not
// mixed in one file or cache. One for each kind of device.
constexpr int kCpuEngineVersion = 4;
constexpr int kGpuEngineVersion = 6;

// `__version__` in the wheel's version.py, two folders above the library. at::show_config would not
// do: it asks for CUDA, and torch keeps the answer from before libtorch_cuda.so is opened.
std::string wheel_version() {
  Dl_info library{};
  if (::dladdr(reinterpret_cast<const void*>(&at::show_config), &library) == 0) return {};
  const auto folder = std::filesystem::path(library.dli_fname).parent_path().parent_path();
  const auto text = read_file(folder / "version.py", 1 << 16);
  constexpr std::string_view kKey = "__version__ = '";
  const auto begin = text ? text->find(kKey) : std::string::npos;
  if (begin == std::string::npos) return {};
  const auto value = begin + kKey.size();
  return text->substr(value, text->find('\'', value) - value);
}

bool torch_says(const char* operator_name) {
  const auto outcome = guarded([&]() -> Result<bool> {
    return c10::Dispatcher::singleton().findSchemaOrThrow(operator_name, "").typed<bool()>().call();
  });
  return outcome && *outcome;
}

// The capabilities by which oneDNN chooses its kernels and their blocking, and so the order of
// sums, and by which our own bf16 product is chosen. Source: torch 2.11,
// at::cpu::get_cpu_capabilities. AMX counts where Linux lets this process use it.
std::string cpu_class() {
  constexpr std::array<const char*, 7> kSets{
      "avx2", "avx_vnni", "avx512_f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_fp16"};
  const auto capabilities = at::cpu::get_cpu_capabilities();
  std::string text(best_kernels().name);
  for (const auto* set : kSets) {
    const auto found = capabilities.find(set);
    if (found != capabilities.end() && found->second.isBool() && found->second.toBool()) {
      text += fmt::format("+{}", set);
    }
  }
  if (has_amx_tiles()) text += "+amx_bf16";
  for (const auto* size : {"l1d_cache_size", "l2_cache_size"}) {
    const auto found = capabilities.find(size);
    if (found != capabilities.end() && found->second.isInt()) {
      text += fmt::format("/{}", found->second.toInt());
    }
  }
  // oneDNN's own switches. Source: oneDNN 3.10 developer guide, "CPU Dispatcher Control" and
  // "Floating-point Math Mode".
  for (const auto* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ONEDNN_CPU_ISA_HINTS",
                           "DNNL_CPU_ISA_HINTS", "ONEDNN_DEFAULT_FPMATH_MODE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) text += fmt::format("/{}={}", name, value);
  }
  return text;
}

}  // namespace

std::string engine_class(DeviceKind device) {
  // The stand-in's kernels are the CPU's.
  return fmt::format("{}/{}/torch-{}/engine-{}", device_kind_name(device),
                     device == DeviceKind::Cuda ? cuda_class() : cpu_class(), torch_version(),
                     runs_as_gpu(device) ? kGpuEngineVersion : kCpuEngineVersion);
}

// Denormal numbers are flushed because arithmetic on them is many times slower on some CPUs. The
// setting belongs to a thread, so each lane makes it for itself.
void enter_lane(DeviceKind device) {
  at::set_num_threads(1);
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
  if (!runs_as_gpu(device)) return;
  // A lost device is found by the first batch.
  (void)guarded([&]() -> Status {
    take_stream(torch_device(device));
    return Done{};
  });
}

std::string torch_version() {
  const auto version = wheel_version();
  return version.empty() ? std::string(TORCH_VERSION) : version;
}

std::vector<Precision> precisions_to_try(DeviceKind device) {
  if (runs_as_gpu(device)) return {Precision::Fp32, Precision::Bf16, Precision::Fp16};
  std::vector<Precision> precisions{Precision::Fp32};
  if (torch_says("mkldnn::_is_mkldnn_bf16_supported")) precisions.push_back(Precision::Bf16);
  return precisions;
}

}  // namespace muster::engine
