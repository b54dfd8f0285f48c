// All loops of a decoder for AVX-512, and rows in blocks of 8 bits four blocks at a time.

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
#include "engine/ops/activation_blocks_avx512.h"
#include "engine/ops/blocks_avx2.h"
#include "engine/ops/decoder_kernel_table.h"
#include "engine/ops/simd_avx512.h"
#include "engine/ops/transformed_blocks_avx512.h"

namespace muster::engine {
namespace {

// A type of this file's own: the linker keeps one of two functions of the same name, and that of
// decoder_kernels_avx2.cpp must not be the one that was compiled here.
struct Blocks256 final : BlocksAvx2 {};

constexpr DecoderKernels kernels_of_avx512() {
  auto kernels = decoder_kernel_table<SimdAvx512, Blocks256>("avx512");
  kernels.interleaves_panels = true;
  kernels.quantize = quantize_row_by_fours;
  kernels.gate_blocks = gate_blocks_by_fours<SimdAvx512>;
  kernels.quantize_transformed = quantize_transformed_avx512;
  kernels.gate_transformed = gate_transformed_avx512<SimdAvx512>;
  return kernels;
}

}  // namespace

constinit const DecoderKernels kAvx512DecoderKernels = kernels_of_avx512();

}  // namespace muster::engine
