// The 8-bit product with AVX2: 4 rows by 16 outputs are 8 of 16 registers. The instruction that
// multiplies bytes wants one side without a sign, and two of its products saturate at 16 bits. So
// the weights lose their sign to the row: 2 x 127 x 127 fits, and every sum is exact.

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

// As in kernels_avx2.cpp: everything of the standard library is included above.
#include <immintrin.h>
#pragma GCC target("avx2,fma")
#include "engine/ops/int8_product_kernel.h"
#include "engine/ops/simd_avx2.h"

namespace muster::engine {
namespace {

struct Int8OpsAvx2 : SimdAvx2 {
  static constexpr int kRowOffset = 0;
  static constexpr std::size_t kStripRowsMax = 4;
  static constexpr std::size_t kTileVectors = 2;

  using Ints = __m256i;
  struct Weights {
    __m256i value;
    __m256i magnitude;
  };
  using Inputs = __m256i;

  static Ints first_sums(const std::int32_t*) { return _mm256_setzero_si256(); }
  static Weights load_weights(const std::int8_t* from) {
    const __m256i value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return {value, _mm256_abs_epi8(value)};
  }
  static Inputs load_inputs(const std::uint8_t* from) {
    std::int32_t four = 0;
    std::memcpy(&four, from, sizeof four);
    return _mm256_set1_epi32(four);
  }
  static Ints add_products(Inputs inputs, Weights weights, Ints sums) {
    const __m256i signed_inputs = _mm256_sign_epi8(inputs, weights.value);
    const __m256i pairs = _mm256_maddubs_epi16(weights.magnitude, signed_inputs);
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  static void store_sums(std::int32_t* to, Ints sums) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sums);
  }
  static Vector scaled(const std::int32_t* sums, Vector scale, Vector bias) {
    const __m256i whole = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole), scale, bias);
  }
  static void store_bytes(std::uint8_t* to, Vector value) {
    const __m256i whole = _mm256_cvtps_epi32(value);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(words, words));
  }
};

}  // namespace

const Int8Kernels kInt8Avx2{"avx2", Int8OpsAvx2::kRowOffset, quantize_int8<Int8OpsAvx2>,
                            multiply_int8<Int8OpsAvx2>};

}  // namespace muster::engine
