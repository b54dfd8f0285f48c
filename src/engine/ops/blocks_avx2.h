#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/ops/panel_product_kernel.h"
#include "engine/ops/simd_avx2.h"

namespace muster::engine {

/// `Ops` of block_product_kernel.h in two registers each. Only for functions compiled for AVX2, FMA
/// and F16C.
struct BlocksAvx2 {
  static constexpr std::size_t kRowsMax = 3;
  // There are no registers for two panels at once.
  static constexpr std::size_t kPairRowsMax = 0;
  static constexpr int kMiddleOfBytes = 0;  // the bytes get their sign back

  struct Ints {
    __m256i half[2];
  };
  using Bytes = Ints;
  struct Floats {
    __m256 half[2];
  };

  static Ints ints(std::int32_t value) {
    return {{_mm256_set1_epi32(value), _mm256_set1_epi32(value)}};
  }
  static Floats floats(float value) { return {{_mm256_set1_ps(value), _mm256_set1_ps(value)}}; }
  static Floats load_floats(const float* from) {
    return {{_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}};
  }
  static Floats load_halves(const Float16* from) {
    return {{SimdAvx2::load(from), SimdAvx2::load(from + 8)}};
  }
  static Bytes load_bytes(const std::byte* from) {
    const auto* halves = reinterpret_cast<const __m256i*>(from);
    return {{_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)}};
  }
  static Bytes low_halves(Bytes bytes) {
    const __m256i mask = _mm256_set1_epi8(0x0f);
    return {{_mm256_and_si256(bytes.half[0], mask), _mm256_and_si256(bytes.half[1], mask)}};
  }
  static Bytes high_halves(Bytes bytes) {
    return low_halves({{_mm256_srli_epi16(bytes.half[0], 4), _mm256_srli_epi16(bytes.half[1], 4)}});
  }
  // Two products at most 15 x 128 each fit the 16 bits that the instruction saturates to.
  static Ints add_products_of_halves(Bytes quants, std::int32_t four, Ints sum) {
    const __m256i value = _mm256_set1_epi32(four);
    for (int i = 0; i < 2; ++i) {
      sum.half[i] = add_pairs(_mm256_maddubs_epi16(quants.half[i], value), sum.half[i]);
    }
    return sum;
  }
  // |q| times p with q's sign: 2 x 128 x 127 fits 16 bits.
  static Ints add_products_of_bytes(Bytes quants, std::int32_t four, Ints sum) {
    const __m256i value = _mm256_set1_epi32(four);
    for (int i = 0; i < 2; ++i) {
      const __m256i q = _mm256_xor_si256(quants.half[i], _mm256_set1_epi8(-128));
      const __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(value, q));
      sum.half[i] = add_pairs(products, sum.half[i]);
    }
    return sum;
  }
  static Floats to_floats(Ints sum) {
    return {{_mm256_cvtepi32_ps(sum.half[0]), _mm256_cvtepi32_ps(sum.half[1])}};
  }
  static Floats multiply(Floats a, Floats b) {
    return {{_mm256_mul_ps(a.half[0], b.half[0]), _mm256_mul_ps(a.half[1], b.half[1])}};
  }
  static Floats multiply_add(Floats a, Floats b, Floats c) {
    return {{_mm256_fmadd_ps(a.half[0], b.half[0], c.half[0]),
             _mm256_fmadd_ps(a.half[1], b.half[1], c.half[1])}};
  }
  static void put(Floats sums, std::size_t count, bool adds, float* to) {
    for (std::size_t i = 0; i < 2 && i * 8 < count; ++i) {
      put_sums<SimdAvx2>(sums.half[i], count - i * 8, adds, to + i * 8);
    }
  }

 private:
  static __m256i add_pairs(__m256i pairs, __m256i sum) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

}  // namespace muster::engine
