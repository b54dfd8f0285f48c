#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "engine/ops/simd_avx512.h"

namespace muster::engine {

/// `Ops` of block_product_kernel.h in one register each. Only for functions compiled for AVX512F,
/// BW, DQ, VL and VNNI.
struct BlocksAvx512Vnni {
  // 8 x 2 sums beside 8 unpacked registers of quants.
  static constexpr std::size_t kRowsMax = 8;
  // 6 x 2 x 2 sums beside two registers of quants and an input's. int8 has as many once more, which
  // are in memory but when four blocks have been added up.
  static constexpr std::size_t kPairRowsMax = 6;
  // The instruction takes bytes without a sign: q + 128, whose 128 the sums are short of.
  static constexpr int kMiddleOfBytes = 128;

  using Ints = __m512i;
  using Bytes = __m512i;
  using Floats = __m512;

  static Ints ints(std::int32_t value) { return _mm512_set1_epi32(value); }
  static Floats floats(float value) { return _mm512_set1_ps(value); }
  static Floats load_floats(const float* from) { return _mm512_loadu_ps(from); }
  static Floats load_halves(const Float16* from) { return SimdAvx512::load(from); }
  static Bytes load_bytes(const std::byte* from) { return _mm512_loadu_si512(from); }
  static Bytes low_halves(Bytes bytes) { return _mm512_and_si512(bytes, _mm512_set1_epi8(0x0f)); }
  static Bytes high_halves(Bytes bytes) {
    return _mm512_and_si512(_mm512_srli_epi16(bytes, 4), _mm512_set1_epi8(0x0f));
  }
  static Ints add_products_of_halves(Bytes quants, std::int32_t four, Ints sum) {
    return _mm512_dpbusd_epi32(sum, quants, _mm512_set1_epi32(four));
  }
  static Ints add_products_of_bytes(Bytes quants, std::int32_t four, Ints sum) {
    return _mm512_dpbusd_epi32(sum, quants, _mm512_set1_epi32(four));
  }
  static Floats to_floats(Ints sum) { return _mm512_cvtepi32_ps(sum); }
  static Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static void put(Floats sums, std::size_t count, bool adds, float* to) {
    if (count == 16) {
      if (adds) sums = _mm512_add_ps(sums, _mm512_loadu_ps(to));
      _mm512_storeu_ps(to, sums);
      return;
    }
    const auto mask = SimdAvx512::mask(count);
    if (adds) sums = _mm512_add_ps(sums, _mm512_maskz_loadu_ps(mask, to));
    _mm512_mask_storeu_ps(to, mask, sums);
  }
};

}  // namespace muster::engine
