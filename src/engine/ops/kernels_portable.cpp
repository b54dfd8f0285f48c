#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "engine/ops/attention_kernel.h"
#include "engine/ops/kernels.h"
#include "engine/ops/kernels_by_cpu.h"
#include "engine/ops/layer_norm_kernel.h"
#include "engine/ops/simd_portable.h"

namespace muster::engine {

const Kernels kPortableKernels{
    .name = "portable",
    .attention_scratch_size = attention_scratch_size<SimdPortable>,
    .attend_fp32 = attend<SimdPortable, float>,
    .attend_bf16 = attend<SimdPortable, Bfloat16>,
    .add_layer_norm_fp32 = add_layer_norm<SimdPortable, float>,
    .add_layer_norm_bf16 = add_layer_norm<SimdPortable, Bfloat16>,
};

}  // namespace muster::engine
