#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "engine/ops/bfloat16.h"
#include "engine/ops/float16.h"

namespace muster::engine {

/// 8 floats in an AVX register. Only for functions compiled for AVX2 and FMA, and for Float16 F16C.
struct SimdAvx2 {
  static constexpr std::size_t kWidth = 8;
  // 12 accumulators of 16 registers; the rest holds operands.
  static constexpr std::size_t kRowsMax = 6;
  static constexpr std::size_t kVectorsMax = 2;

  using Vector = __m256;

  static __m256i mask(std::size_t count) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lanes);
  }

  static Vector broadcast(float value) { return _mm256_set1_ps(value); }
  static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  static Vector load(const Bfloat16* from) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static Vector load(const Float16* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static Vector load(const std::int8_t* from) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
  static Vector load_first(const float* from, std::size_t count) {
    return _mm256_maskload_ps(from, mask(count));
  }
  static Vector load_first(const Bfloat16* from, std::size_t count) {
    Bfloat16 whole[kWidth]{};
    for (std::size_t i = 0; i < count; ++i) whole[i] = from[i];
    return load(whole);
  }
  static void store(float* to, Vector value) { _mm256_storeu_ps(to, value); }
  // What is not a number would be rounded into the sign, so it keeps its upper half, made quiet.
  static void store(Bfloat16* to, Vector value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i is_none = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i kept = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_none), 16);
    const __m128i packed =
        _mm_packus_epi32(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), packed);
  }
  // The second operand is the one that stays where it is not a number.
  static void store(Float16* to, Vector value) {
    const Vector most = _mm256_set1_ps(kFloat16Max);
    const Vector least = _mm256_set1_ps(-kFloat16Max);
    const Vector kept = _mm256_max_ps(least, _mm256_min_ps(most, value));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm256_cvtps_ph(kept, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static void store_first(float* to, Vector value, std::size_t count) {
    _mm256_maskstore_ps(to, mask(count), value);
  }
  static void store_first(Bfloat16* to, Vector value, std::size_t count) {
    Bfloat16 whole[kWidth];
    store(whole, value);
    for (std::size_t i = 0; i < count; ++i) to[i] = whole[i];
  }

  /// Whole numbers of -128..127.
  static void store_bytes(std::int8_t* to, Vector value) {
    const __m256i whole = _mm256_cvtps_epi32(value);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(words, words));
  }

  /// 2 x kWidth values as two vectors: those of even and those of odd places.
  static void load_pairs(const Bfloat16* from, Vector& even, Vector& odd) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    even = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
    odd = _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(-65536)));
  }

  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector subtract(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
  static Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector divide(Vector a, Vector b) { return _mm256_div_ps(a, b); }
  static Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
  static Vector min(Vector a, Vector b) { return _mm256_min_ps(a, b); }
  /// a where the sign bit of `sign` is set, else b.
  static Vector select_negative(Vector sign, Vector a, Vector b) {
    return _mm256_blendv_ps(b, a, sign);
  }
  static Vector first(Vector a, Vector b, std::size_t count) {
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(mask(count)));
  }
  static Vector round(Vector a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Vector scale_by_power(Vector a, Vector n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
  }
  static float sum(Vector a) {
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
  }
  static float largest(Vector a) {
    const __m128 half = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 pair = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
  }

  /// Transposes 8 x 8 in three steps: pairs, quads, then the two 128-bit lanes.
  static void transpose(Vector (&rows)[kWidth]) {
    Vector pairs[kWidth];
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    Vector quads[kWidth];
    for (int i = 0; i < 8; i += 4) {
      quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
      quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
      quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
      quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
      rows[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
      rows[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
    }
  }
};

}  // namespace muster::engine
