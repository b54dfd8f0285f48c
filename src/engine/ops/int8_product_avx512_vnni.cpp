// The 8-bit product with the instruction that multiplies bytes and adds four products to an
// integer: 14 rows by 32 outputs are 28 of 32 registers, the rest two of the panel and one of a
// row. Its bytes of a row have no sign, so each quant stands there with 128 added, and the sums
// begin with what that is too much.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/ops/int8_product.h"
#include "engine/ops/kernels.h"

// As in kernels_avx512.cpp: everything of the standard library is included above.
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")
#include "engine/ops/int8_product_kernel.h"
#include "engine/ops/simd_avx512.h"

namespace muster::engine {
namespace {

struct Int8OpsAvx512Vnni : SimdAvx512 {
  static constexpr int kRowOffset = 128;
  static constexpr std::size_t kStripRowsMax = 14;
  static constexpr std::size_t kTileVectors = 2;

  using Ints = __m512i;
  using Weights = __m512i;
  using Inputs = __m512i;

  static Ints first_sums(const std::int32_t* column_sums) {
    const __m512i too_much = _mm512_slli_epi32(_mm512_loadu_si512(column_sums), 7);
    return _mm512_sub_epi32(_mm512_setzero_si512(), too_much);
  }
  static Weights load_weights(const std::int8_t* from) { return _mm512_loadu_si512(from); }
  static Inputs load_inputs(const std::uint8_t* from) {
    std::int32_t four = 0;
    std::memcpy(&four, from, sizeof four);
    return _mm512_set1_epi32(four);
  }
  static Ints add_products(Inputs inputs, Weights weights, Ints sums) {
    return _mm512_dpbusd_epi32(sums, inputs, weights);
  }
  static void store_sums(std::int32_t* to, Ints sums) { _mm512_storeu_si512(to, sums); }
  static Vector scaled(const std::int32_t* sums, Vector scale, Vector bias) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(sums)), scale, bias);
  }
  static void store_bytes(std::uint8_t* to, Vector value) {
    const __m128i quants = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(value));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_xor_si128(quants, _mm_set1_epi8(-128)));
  }
};

}  // namespace

const Int8Kernels kInt8Avx512Vnni{"avx512+vnni", Int8OpsAvx512Vnni::kRowOffset,
                                  quantize_int8<Int8OpsAvx512Vnni>,
                                  multiply_int8<Int8OpsAvx512Vnni>};

}  // namespace muster::engine
