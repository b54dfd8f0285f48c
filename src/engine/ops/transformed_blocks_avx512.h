#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "engine/ops/activation_blocks_avx512.h"
#include "engine/ops/hadamard.h"
#include "engine/ops/panel_product.h"
#include "engine/ops/row_kernel.h"

namespace muster::engine {

// Rows in transformed blocks of 8 bits, as `quantize_transformed_row` makes them, in registers: the
// steps of the transform are between registers, two at a time, and what stands in one register is
// brought there by transposing. Only for functions compiled for AVX512F, BW, DQ and VL.

/// Two steps of the transform, between registers: of distances 2 and 1.
[[gnu::always_inline]] inline void hadamard_of_registers(__m512 (&x)[4]) {
  const __m512 a = _mm512_add_ps(x[0], x[2]);
  const __m512 b = _mm512_add_ps(x[1], x[3]);
  const __m512 c = _mm512_sub_ps(x[0], x[2]);
  const __m512 d = _mm512_sub_ps(x[1], x[3]);
  x[0] = _mm512_add_ps(a, b);
  x[1] = _mm512_sub_ps(a, b);
  x[2] = _mm512_add_ps(c, d);
  x[3] = _mm512_sub_ps(c, d);
}

/// Lane i of register r becomes lane r of register i.
[[gnu::always_inline]] inline void transpose_lanes(__m512 (&x)[4]) {
  const __m512 a = _mm512_shuffle_f32x4(x[0], x[1], 0x88);
  const __m512 b = _mm512_shuffle_f32x4(x[0], x[1], 0xdd);
  const __m512 c = _mm512_shuffle_f32x4(x[2], x[3], 0x88);
  const __m512 d = _mm512_shuffle_f32x4(x[2], x[3], 0xdd);
  x[0] = _mm512_shuffle_f32x4(a, c, 0x88);
  x[1] = _mm512_shuffle_f32x4(b, d, 0x88);
  x[2] = _mm512_shuffle_f32x4(a, c, 0xdd);
  x[3] = _mm512_shuffle_f32x4(b, d, 0xdd);
}

/// In each lane, element i of register r becomes element r of register i.
[[gnu::always_inline]] inline void transpose_elements(__m512 (&x)[4]) {
  const __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(x[0], x[1]));
  const __m512d b = _mm512_castps_pd(_mm512_unpackhi_ps(x[0], x[1]));
  const __m512d c = _mm512_castps_pd(_mm512_unpacklo_ps(x[2], x[3]));
  const __m512d d = _mm512_castps_pd(_mm512_unpackhi_ps(x[2], x[3]));
  x[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
  x[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
  x[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
  x[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
}

/// `hadamard_64` of 64 values. Value 16 a + 4 l + e stands in register a first; at the end in lane
/// a and element l of register e.
[[gnu::always_inline]] inline void hadamard_64(__m512 (&x)[4]) {
  hadamard_of_registers(x);
  transpose_lanes(x);
  hadamard_of_registers(x);
  transpose_elements(x);
  hadamard_of_registers(x);
}

/// Whole numbers of -128..127, which stand as `hadamard_64` leaves them, as bytes in their order.
[[gnu::always_inline]] inline __m512i pack_in_order(const __m512i (&whole)[4]) {
  const __m512i packed = _mm512_packs_epi16(_mm512_packs_epi32(whole[0], whole[1]),
                                            _mm512_packs_epi32(whole[2], whole[3]));
  const __m512i order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  return _mm512_shuffle_epi8(packed, order);
}

/// The sum of each of four vectors.
[[gnu::always_inline]] inline __m128i sums_of_each(const __m512i (&of)[4]) {
  // Of each lane: of[0] and of[1], of[2] and of[3], in elements that alternate; then all four.
  const __m512i first =
      _mm512_add_epi32(_mm512_unpacklo_epi32(of[0], of[1]), _mm512_unpackhi_epi32(of[0], of[1]));
  const __m512i last =
      _mm512_add_epi32(_mm512_unpacklo_epi32(of[2], of[3]), _mm512_unpackhi_epi32(of[2], of[3]));
  const __m512i lanes =
      _mm512_add_epi32(_mm512_unpacklo_epi64(first, last), _mm512_unpackhi_epi64(first, last));
  const __m256i halves =
      _mm256_add_epi32(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
}

static_assert(offsetof(TransformedBlock, scale) == 64 &&
              offsetof(TransformedBlock, minus_128_sum) == 68);

/// kBlocks: 1 to 4. source: gives 16 values of the row, its `at`th ones.
template <std::size_t kBlocks, typename Source>
[[gnu::always_inline]] inline void quantize_transformed_blocks(const Source& source, std::size_t at,
                                                               TransformedBlock* blocks) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  __m512 values[kBlocks][4];
  __m512i most[4];
#pragma GCC unroll 4
  for (std::size_t b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 4; ++v) {
      values[b][v] = source(at + b * 4 + v);
      // As if it had been stored: no product of the source's is fused with a sum of the transform.
      asm("" : "+v"(values[b][v]));
    }
    hadamard_64(values[b]);
    __m512i of[4];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 4; ++v) {
      of[v] = _mm512_and_si512(_mm512_castps_si512(values[b][v]), magnitude);
    }
    most[b] = _mm512_max_epi32(_mm512_max_epi32(of[0], of[1]), _mm512_max_epi32(of[2], of[3]));
  }
  for (std::size_t b = kBlocks; b < 4; ++b) most[b] = most[0];
  const auto scales = FourScales::of(most);
  __m512i fours[4];
#pragma GCC unroll 4
  for (std::size_t b = 0; b < kBlocks; ++b) {
    const __m512 inverse = scales.inverse(b);
    __m512i whole[4];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 4; ++v) {
      whole[v] = _mm512_cvtps_epi32(_mm512_mul_ps(values[b][v], inverse));
    }
    const __m512i quants = pack_in_order(whole);
    _mm512_storeu_si512(blocks[b].quants, quants);
    fours[b] = sums_of_fours(quants);
  }
  for (std::size_t b = kBlocks; b < 4; ++b) fours[b] = fours[0];
  const __m128i sums = _mm_maskz_mov_epi32(scales.is_finite, sums_of_each(fours));
  const __m128 scaled = _mm_mul_ps(scales.kept(), _mm_set1_ps(kHadamardFactor));
  const __m128 shifted =
      _mm_castsi128_ps(_mm_sub_epi32(_mm_setzero_si128(), _mm_slli_epi32(sums, 7)));
  const __m128 first = _mm_unpacklo_ps(scaled, shifted);
  const __m128 last = _mm_unpackhi_ps(scaled, shifted);
  const auto put = [&](std::size_t b, __m128 both) __attribute__((always_inline)) {
    if (b < kBlocks) _mm_storel_pi(reinterpret_cast<__m64*>(&blocks[b].scale), both);
  };
  put(0, first);
  put(1, _mm_movehl_ps(first, first));
  put(2, last);
  put(3, _mm_movehl_ps(last, last));
}

template <typename Source>
[[gnu::always_inline]] inline void quantize_transformed_by_fours(const Source& source,
                                                                 std::size_t count,
                                                                 TransformedBlock* blocks) {
  std::size_t block = 0;
  for (; block + 4 <= count; block += 4) {
    quantize_transformed_blocks<4>(source, block * 4, blocks + block);
  }
  if (count - block >= 2) {
    quantize_transformed_blocks<2>(source, block * 4, blocks + block);
    block += 2;
  }
  if (block < count) quantize_transformed_blocks<1>(source, block * 4, blocks + block);
}

/// `DecoderKernels::quantize_transformed`.
static void quantize_transformed_avx512(std::size_t size, const float* x,
                                        TransformedBlock* blocks) {
  quantize_transformed_by_fours(StoredValues{x}, size / kTransformedInputs, blocks);
}

template <typename Simd, typename Simd::Vector (*apply)(typename Simd::Vector)>
[[gnu::always_inline]] inline void gate_transformed_by(std::size_t size, const float* gate,
                                                       const float* up, TransformedBlock* blocks) {
  quantize_transformed_by_fours(gated_values<Simd, apply>(gate, up), size / kTransformedInputs,
                                blocks);
}

/// `DecoderKernels::gate_transformed`.
template <typename Simd>
void gate_transformed_avx512(DecoderActivation activation, std::size_t size, float* gate,
                             const float* up, TransformedBlock* blocks) {
  switch (activation) {
    case DecoderActivation::Silu:
      return gate_transformed_by<Simd, silu<Simd>>(size, gate, up, blocks);
    case DecoderActivation::GeluTanh:
      return gate_transformed_by<Simd, gelu_tanh<Simd>>(size, gate, up, blocks);
    case DecoderActivation::Gelu:
      return gate_transformed_by<Simd, gelu<Simd>>(size, gate, up, blocks);
    case DecoderActivation::Relu:
      return gate_transformed_by<Simd, relu<Simd>>(size, gate, up, blocks);
  }
}

}  // namespace muster::engine
