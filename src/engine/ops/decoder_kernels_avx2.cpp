#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/ops/decoder_kernels_by_cpu.h"

// As in kernels_avx2.cpp: everything of the standard library is included above.
#include <immintrin.h>
#pragma GCC target("avx2,fma,f16c")
#include "engine/ops/blocks_avx2.h"
#include "engine/ops/decoder_kernel_table.h"
#include "engine/ops/simd_avx2.h"

namespace muster::engine {

constinit const DecoderKernels kAvx2DecoderKernels =
    decoder_kernel_table<SimdAvx2, BlocksAvx2>("avx2");

}  // namespace muster::engine
