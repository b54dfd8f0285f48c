#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "engine/ops/kernels.h"
#include "engine/ops/kernels_by_cpu.h"

// From here on functions are compiled for this instruction set. Everything of the standard library
// is included above, so that no shared inline function is: the linker might keep that copy for all.
#include <immintrin.h>
// g++ 12 calls the "undefined" operand inside its own AVX-512 intrinsics uninitialised (GCC bug
// 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
#include "engine/ops/attention_kernel.h"
#include "engine/ops/layer_norm_kernel.h"
#include "engine/ops/simd_avx512.h"

namespace muster::engine {

const Kernels kAvx512Kernels{
    .name = "avx512",
    .attention_scratch_size = attention_scratch_size<SimdAvx512>,
    .attend_fp32 = attend<SimdAvx512, float>,
    .attend_bf16 = attend<SimdAvx512, Bfloat16>,
    .add_layer_norm_fp32 = add_layer_norm<SimdAvx512, float>,
    .add_layer_norm_bf16 = add_layer_norm<SimdAvx512, Bfloat16>,
};

}  // namespace muster::engine
