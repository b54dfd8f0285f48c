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

// As in kernels_avx512.cpp: everything of the standard library is included above.
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#include "engine/ops/blocks_avx2.h"
#include "engine/ops/decoder_kernel_table.h"
#include "engine/ops/simd_avx512.h"

namespace muster::engine {
namespace {

// A type of this file's own: the linker keeps one of two functions of the same name, and that of
// decoder_kernels_avx2.cpp must not be the one that was compiled here.
struct Blocks256 final : BlocksAvx2 {};

}  // namespace

constinit const DecoderKernels kAvx512DecoderKernels =
    decoder_kernel_table<SimdAvx512, Blocks256>("avx512");

}  // namespace muster::engine
