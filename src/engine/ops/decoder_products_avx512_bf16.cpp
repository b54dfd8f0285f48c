// The bf16 product with the instruction that multiplies pairs of bf16 and adds them to a float.

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
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")
#include "engine/ops/panel_product_kernel.h"
#include "engine/ops/simd_avx512.h"

namespace muster::engine {
namespace {

/// `Ops` of panel_product_kernel.h.
struct Bf16DotSteps {
  using Simd = SimdAvx512;
  using Vector = __m512;
  using Weight = Bfloat16;
  using Step = __m512bh;
  using Value = __m512bh;

  static std::size_t step_count(std::size_t in_size) { return (in_size + 1) / 2; }
  static Step load(const Bfloat16* from) {
    return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
  }
  static constexpr std::size_t kWeights = 2;

  static const Bfloat16* row(const ProductRows& x, std::size_t index, std::size_t in_size) {
    return x.bf16 + index * ((in_size + 1) / 2 * 2);
  }
  static Value value(const Bfloat16* row, std::size_t step) {
    std::int32_t pair = 0;
    std::memcpy(&pair, row + 2 * step, sizeof pair);
    return reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
  }
  static Vector add(const Step& step, const Value& value, Vector sum) {
    return _mm512_dpbf16_ps(sum, value, step);
  }
};

}  // namespace

void multiply_bf16_avx512_bf16(const PanelWeight& weight, std::size_t panel_begin,
                               std::size_t panel_end, const ProductRows& x, const ProductOut& out) {
  multiply_panels<Bf16DotSteps>(weight, panel_begin, panel_end, x, out);
}

}  // namespace muster::engine
