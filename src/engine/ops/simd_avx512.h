#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "engine/ops/bfloat16.h"
#include "engine/ops/float16.h"

namespace muster::engine {

/// 16 floats in an AVX-512 register. Only for functions compiled for AVX512F, BW, DQ and VL.
struct SimdAvx512 {
  static constexpr std::size_t kWidth = 16;
  // 24 accumulators of 32 registers; the rest holds operands.
  static constexpr std::size_t kRowsMax = 6;
  static constexpr std::size_t kVectorsMax = 4;

  using Vector = __m512;

  static __mmask16 mask(std::size_t count) {
    return static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U);
  }
  static Vector widen(__m256i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  // Round to nearest even in integers: the conversion instruction needs AVX512-BF16. What is not a
  // number would carry over into the sign, so it keeps its upper half, made quiet.
  static __m256i narrow(Vector value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 is_none = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    const __m512i kept = _mm512_mask_or_epi32(rounded, is_none, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16));
  }

  static Vector broadcast(float value) { return _mm512_set1_ps(value); }
  static Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static Vector load(const Bfloat16* from) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static Vector load(const Float16* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static Vector load(const std::int8_t* from) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
  static Vector load_first(const float* from, std::size_t count) {
    return _mm512_maskz_loadu_ps(mask(count), from);
  }
  static Vector load_first(const Bfloat16* from, std::size_t count) {
    return widen(_mm256_maskz_loadu_epi16(mask(count), from));
  }
  static void store(float* to, Vector value) { _mm512_storeu_ps(to, value); }
  static void store(Bfloat16* to, Vector value) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrow(value));
  }
  // The second operand is the one that stays where it is not a number.
  static void store(Float16* to, Vector value) {
    const Vector most = _mm512_set1_ps(kFloat16Max);
    const Vector least = _mm512_set1_ps(-kFloat16Max);
    const Vector kept = _mm512_max_ps(least, _mm512_min_ps(most, value));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_cvtps_ph(kept, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static void store_first(float* to, Vector value, std::size_t count) {
    _mm512_mask_storeu_ps(to, mask(count), value);
  }
  static void store_first(Bfloat16* to, Vector value, std::size_t count) {
    _mm256_mask_storeu_epi16(to, mask(count), narrow(value));
  }

  /// Whole numbers of -128..127.
  static void store_bytes(std::int8_t* to, Vector value) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(value)));
  }

  /// 2 x kWidth values as two vectors: those of even and those of odd places.
  static void load_pairs(const Bfloat16* from, Vector& even, Vector& odd) {
    const __m512i bits = _mm512_loadu_si512(from);
    even = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
    odd = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(-65536)));
  }

  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector subtract(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
  static Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector divide(Vector a, Vector b) { return _mm512_div_ps(a, b); }
  static Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
  static Vector min(Vector a, Vector b) { return _mm512_min_ps(a, b); }
  /// a where the sign bit of `sign` is set, else b.
  static Vector select_negative(Vector sign, Vector a, Vector b) {
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(sign)), b, a);
  }
  static Vector first(Vector a, Vector b, std::size_t count) {
    return _mm512_mask_blend_ps(mask(count), b, a);
  }
  static Vector round(Vector a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Vector scale_by_power(Vector a, Vector n) { return _mm512_scalef_ps(a, n); }
  static float sum(Vector a) { return _mm512_reduce_add_ps(a); }
  static float largest(Vector a) { return _mm512_reduce_max_ps(a); }

  /// Transposes 16 x 16 in four steps: pairs, quads, then the four 128-bit lanes.
  static void transpose(Vector (&rows)[kWidth]) {
    Vector pairs[kWidth];
    for (int i = 0; i < 16; i += 2) {
      pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
      pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    }
    Vector quads[kWidth];
    for (int i = 0; i < 16; i += 4) {
      quads[i] = _mm512_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
      quads[i + 1] = _mm512_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
      quads[i + 2] = _mm512_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
      quads[i + 3] = _mm512_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
      const Vector even_low = _mm512_shuffle_f32x4(quads[i], quads[i + 4], 0x88);
      const Vector odd_low = _mm512_shuffle_f32x4(quads[i], quads[i + 4], 0xdd);
      const Vector even_high = _mm512_shuffle_f32x4(quads[i + 8], quads[i + 12], 0x88);
      const Vector odd_high = _mm512_shuffle_f32x4(quads[i + 8], quads[i + 12], 0xdd);
      rows[i] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
      rows[i + 8] = _mm512_shuffle_f32x4(even_low, even_high, 0xdd);
      rows[i + 4] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
      rows[i + 12] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd);
    }
  }
};

}  // namespace muster::engine
