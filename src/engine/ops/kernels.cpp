#include "engine/ops/kernels.h"

#include "engine/ops/kernels_by_cpu.h"

namespace muster::engine {

std::vector<const Kernels*> kernels_available() {
  std::vector<const Kernels*> available{&kPortableKernels};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    available.push_back(&kAvx2Kernels);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      available.push_back(&kAvx512Kernels);
    }
  }
  return available;
}

const Kernels& best_kernels() { return *kernels_available().back(); }

}  // namespace muster::engine
