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
#pragma GCC target("avx2,fma")
#include "engine/ops/attention_kernel.h"
#include "engine/ops/layer_norm_kernel.h"
#include "engine/ops/simd_avx2.h"

namespace muster::engine {

const Kernels kAvx2Kernels{
    .name = "avx2",
    .attention_scratch_size = attention_scratch_size<SimdAvx2>,
    .attend_fp32 = attend<SimdAvx2, float>,
    .attend_bf16 = attend<SimdAvx2, Bfloat16>,
    .add_layer_norm_fp32 = add_layer_norm<SimdAvx2, float>,
    .add_layer_norm_bf16 = add_layer_norm<SimdAvx2, Bfloat16>,
};

}  // namespace muster::engine
