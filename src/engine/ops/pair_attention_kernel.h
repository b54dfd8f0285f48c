#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "engine/ops/bf16_attention_kernel.h"
#include "engine/ops/decoder_kernels.h"
#include "engine/ops/strips.h"

namespace muster::engine {

// Attention by instructions that multiply pairs of 16-bit numbers and add them to one of 32 bits:
// twice as many products as in float32, and nothing of the cache to convert.
//
// Keys are whole numbers times a power of two, one for each position, so that scores keep 12 bits
// of a query and of a key; they are summed in integers, exactly. A head of 16-bit numbers has no
// room for the power, so its exponent stands in the lowest bits of the first 8 numbers, which are
// read with it. A key changes by rounding, up to half a unit, and in those 8 elements by up to one
// unit more; a unit is 2^-12 of the largest power of two that is not above the largest element.
// Values are bf16, as weights are.
//
// A block of the cache is, as numbers of 16 bits: keys [head_size / 2][16 positions][2], values
// [8 pairs of positions][head_size][2].

inline constexpr std::size_t kKeySegment = 64;  // elements whose products are one integer sum
inline constexpr float kQueryMost = 4095;
/// Source: a segment's sum must stay within 32 bits; a key's last bit may have been set above it.
inline constexpr int kKeyBits = 13;
static_assert(std::int64_t{kKeySegment} * 4095 * ((1 << kKeyBits) + 1) <=
              std::numeric_limits<std::int32_t>::max());

/// Bits of a float's magnitude: for floats without a sign greater ones have greater bits, and those
/// that are not finite the greatest.
inline constexpr std::uint32_t kNotFinite = 0x7f800000U;

template <typename Simd>
[[gnu::always_inline]] inline std::uint32_t largest_magnitude(std::size_t size, const float* x) {
  auto most = _mm512_setzero_si512();
  for (std::size_t at = 0; at < size; at += 16) {
    const auto bits =
        _mm512_and_si512(_mm512_castps_si512(Simd::load(x + at)), _mm512_set1_epi32(0x7fffffff));
    most = _mm512_max_epu32(most, bits);
  }
  return _mm512_reduce_max_epu32(most);
}

/// Pairs of neighbours, rounded to the nearest whole numbers of 16 bits: 8 numbers of 32 bits.
template <typename Simd>
[[gnu::always_inline]] inline void put_pairs(__m512 x, std::int32_t* pairs) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(pairs),
                      _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(x)));
}

template <typename OwnSimd, std::size_t kCount>
struct PairStrip {
  using Simd = OwnSimd;
  static constexpr std::size_t kRows = kCount;
  static constexpr std::size_t kHeadMax = 256;

  alignas(64) std::int32_t queries[kRows][kHeadMax / 2];  // pairs of 16 bits
  alignas(64) float scores[kRows][kChunk];
  alignas(64) std::uint16_t weights[kRows][kChunk];
  alignas(64) float sums[kRows][kHeadMax];
  alignas(64) float totals[kRows][16];
  float query_scales[kRows];
  float largest[kRows];
  std::size_t begin;
  std::size_t end;

  /// Below 2^-100 a query is zero: its scores are.
  [[gnu::always_inline]] void take_query(std::size_t row, std::size_t head_size,
                                         const float* query) {
    const auto bits = largest_magnitude<Simd>(head_size, query);
    float most = 0;
    std::memcpy(&most, &bits, sizeof most);
    const bool is_zero = most < 0x1p-100F;
    const bool is_finite = bits < kNotFinite;
    query_scales[row] = !is_finite ? std::numeric_limits<float>::quiet_NaN()
                        : is_zero  ? 0.0F
                                   : most / kQueryMost;
    const auto inverse = Simd::broadcast(is_finite && !is_zero ? kQueryMost / most : 0.0F);
    for (std::size_t c = 0; c < head_size; c += 16) {
      put_pairs<Simd>(Simd::multiply(Simd::load(query + c), inverse), queries[row] + c / 2);
    }
  }
  [[gnu::always_inline]] void put_weights(std::size_t row, std::size_t at, __m512bh values) {
    _mm512_store_si512(weights[row] + at, bits_of(values));
  }
};

/// The exponent of a key's power of two as float32 has it, in the lowest bits of its first 8
/// elements: bit j in element 2 j, and bit 4 + j in element 2 j + 1.
[[gnu::always_inline]] inline __m512 key_scales(const Float16* keys) {
  const auto lowest = _mm512_set1_epi32(0x00010001);
  auto bits = _mm512_and_si512(_mm512_loadu_si512(keys), lowest);
#pragma GCC unroll 3
  for (int j = 1; j < 4; ++j) {
    const auto next = _mm512_and_si512(_mm512_loadu_si512(keys + j * 2 * kKvBlockTokens), lowest);
    bits = _mm512_or_si512(bits, _mm512_slli_epi32(next, static_cast<unsigned>(j)));
  }
  const auto exponent =
      _mm512_and_si512(_mm512_or_si512(bits, _mm512_srli_epi32(bits, 12)), _mm512_set1_epi32(0xff));
  // The last bit makes what is not finite no number, and is a float's rounding elsewhere.
  return _mm512_castsi512_ps(
      _mm512_or_si512(_mm512_slli_epi32(exponent, 23), _mm512_set1_epi32(1)));
}

/// A key into its place among those of a block.
template <typename Simd>
[[gnu::always_inline]] inline void put_key(std::size_t head_size, std::size_t place,
                                           const float* key, Float16* block) {
  const auto most = largest_magnitude<Simd>(head_size, key);
  const std::uint32_t exponent = most >> 23U;
  std::uint32_t code = 255;   // of a key that is not finite
  std::uint32_t inverse = 0;  // a float's bits
  if (most < kNotFinite) {
    const bool is_zero = exponent < kKeyBits;  // below 2^-114
    code = is_zero ? 0 : exponent - (kKeyBits - 1);
    inverse = is_zero ? 0 : (254 + kKeyBits - 1 - exponent) << 23U;
  }
  alignas(64) std::int32_t pairs[PairStrip<Simd, 1>::kHeadMax / 2];
  const auto by = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<std::int32_t>(inverse)));
  for (std::size_t c = 0; c < head_size; c += 16) {
    const auto x = code == 255 ? Simd::broadcast(0) : Simd::load(key + c);
    put_pairs<Simd>(Simd::multiply(x, by), pairs + c / 2);
  }
  for (unsigned j = 0; j < 4; ++j) {
    const std::uint32_t low = code >> j & 1U;
    const std::uint32_t high = code >> (4 + j) & 1U;
    const auto pair = static_cast<std::uint32_t>(pairs[j]) & ~0x00010001U;
    pairs[j] = static_cast<std::int32_t>(pair | low | high << 16U);
  }
  Float16* to = block + 2 * place;
  for (std::size_t c = 0; c < head_size / 2; ++c, to += 2 * kKvBlockTokens) {
    std::memcpy(static_cast<void*>(to), pairs + c, sizeof pairs[c]);
  }
}

/// A value into its place among those of a block; of its neighbour nothing is written.
template <typename Simd>
[[gnu::always_inline]] inline void put_value(std::size_t head_size, std::size_t place,
                                             const float* value, Float16* block) {
  Float16* to = block + head_size * kKvBlockTokens + place / 2 * 2 * head_size;
  const bool is_odd = place % 2 != 0;
  const __mmask32 mask = is_odd ? 0xaaaaaaaaU : 0x55555555U;
  for (std::size_t c = 0; c < head_size; c += 16) {
    const auto narrow = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(Simd::load(value + c)));
    auto wide = _mm512_cvtepu16_epi32(narrow);
    if (is_odd) wide = _mm512_slli_epi32(wide, 16);
    _mm512_mask_storeu_epi16(to + 2 * c, mask, wide);
  }
}

/// Strips of fewer rows than the registers hold fetch what comes next into the first-level cache:
/// keys of the next blocks, values behind the last keys, values of the next block. Those that have
/// all rows are mostly of prompts, whose other rows have read the same before them.
///
/// Source: SmolLM2-135M in int8, 32 streams with 140 positions each on two cores of a Zen 5: 3,130
/// and 3,280 tokens a second without, 3,350 with it (medians of 16).
template <typename Simd, std::size_t kRows>
inline constexpr bool kFetchesAhead = kRows < Simd::kRowsMax;

/// Scores of kBlocks blocks, to column `column` of the chunk's: of a segment [begin, end) of the
/// head, and of those before it, which are there. next: what is read after them, as large.
/// Not inline, like `combine_pairs`: alone its sums stay in registers.
template <std::size_t kBlocks, typename Simd, std::size_t kRows>
[[gnu::noinline]] void score_segment(const Float16* const (&keys)[kBlocks],
                                     const Float16* const (&next)[kBlocks], std::size_t begin,
                                     std::size_t end, bool is_last, std::size_t column,
                                     PairStrip<Simd, kRows>& strip) {
  __m512i sums[kRows][kBlocks];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (std::size_t b = 0; b < kBlocks; ++b) sums[i][b] = _mm512_setzero_si512();
  }
  for (std::size_t c = begin; c < end; c += 2) {
    __m512i key[kBlocks];
    if constexpr (kFetchesAhead<Simd, kRows>) {
#pragma GCC unroll 8
      for (std::size_t b = 0; b < kBlocks; ++b) __builtin_prefetch(next[b] + c * kKvBlockTokens);
    }
#pragma GCC unroll 8
    for (std::size_t b = 0; b < kBlocks; ++b) {
      key[b] = _mm512_loadu_si512(keys[b] + c * kKvBlockTokens);
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto query = _mm512_set1_epi32(strip.queries[i][c / 2]);
#pragma GCC unroll 8
      for (std::size_t b = 0; b < kBlocks; ++b) {
        // What GCC 12 makes of the intrinsic moves each sum twice and keeps a copy on the stack.
        asm("vpdpwssd %2, %1, %0" : "+v"(sums[i][b]) : "v"(query), "v"(key[b]));
      }
    }
  }
#pragma GCC unroll 8
  for (std::size_t b = 0; b < kBlocks; ++b) {
    const auto scales = key_scales(keys[b]);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      float* to = strip.scores[i] + column + b * kKvBlockTokens;
      auto score = _mm512_cvtepi32_ps(sums[i][b]);
      if (begin > 0) score = Simd::add(score, Simd::load(to));
      if (is_last) {
        const auto scaled = Simd::multiply(scales, Simd::broadcast(strip.query_scales[i]));
        score = Simd::multiply(score, scaled);
      }
      Simd::store(to, score);
    }
  }
}

/// Scores of kBlocks blocks from `block` on, of those of a chunk, [first, last), to column
/// `column`.
template <std::size_t kBlocks, typename Simd, std::size_t kRows>
[[gnu::always_inline]] inline void score_pairs(const PagedHead<Float16>& head, std::size_t block,
                                               std::size_t first, std::size_t last,
                                               std::size_t column, PairStrip<Simd, kRows>& strip) {
  const Float16* keys[kBlocks];
  const Float16* next[kBlocks];
#pragma GCC unroll 8
  for (std::size_t b = 0; b < kBlocks; ++b) {
    const std::size_t then = block + kBlocks + b;
    keys[b] = head.keys(block + b);
    next[b] = then < last ? head.keys(then) : head.values(std::min(first + then - last, last - 1));
  }
  for (std::size_t c = 0; c < head.head_size; c += kKeySegment) {
    const std::size_t end = std::min(c + kKeySegment, head.head_size);
    score_segment<kBlocks>(keys, next, c, end, end == head.head_size, column, strip);
  }
}

/// sums += weights values of the positions [begin, end) of a chunk, for kColumns vectors of columns
/// from `column` on.
template <std::size_t kColumns, typename Simd, std::size_t kRows>
[[gnu::noinline]] void combine_pairs(const PagedHead<Float16>& head, std::size_t chunk,
                                     std::size_t begin, std::size_t end, std::size_t column,
                                     PairStrip<Simd, kRows>& strip) {
  __m512 sums[kRows][kColumns];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kColumns; ++v) {
      sums[i][v] = Simd::load(strip.sums[i] + column + v * 16);
    }
  }
  for (std::size_t p = begin / 2 * 2; p < end;) {
    const std::size_t until = std::min(end, (p / kKvBlockTokens + 1) * kKvBlockTokens);
    const Float16* values =
        head.values(p / kKvBlockTokens) + p % kKvBlockTokens * head.head_size + 2 * column;
    const Float16* then = head.values((until < end ? until : p) / kKvBlockTokens) +
                          p % kKvBlockTokens * head.head_size + 2 * column;
    for (; p < until; p += 2, values += 2 * head.head_size, then += 2 * head.head_size) {
      if constexpr (kFetchesAhead<Simd, kRows>) {
#pragma GCC unroll 8
        for (std::size_t v = 0; v < kColumns; ++v) __builtin_prefetch(then + v * 32);
      }
      __m512i value[kColumns];
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kColumns; ++v) value[v] = _mm512_loadu_si512(values + v * 32);
      if (p < begin || p + 2 > end) {  // the other of the pair may be anything
        const auto seen = _mm512_set1_epi32(p < begin ? -65536 : 65535);
#pragma GCC unroll 8
        for (std::size_t v = 0; v < kColumns; ++v) value[v] = _mm512_and_si512(value[v], seen);
      }
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kRows; ++i) {
        std::int32_t pair = 0;
        std::memcpy(&pair, strip.weights[i] + (p - chunk), sizeof pair);
        const auto weights = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 8
        for (std::size_t v = 0; v < kColumns; ++v) {
          sums[i][v] = _mm512_dpbf16_ps(sums[i][v], weights, reinterpret_cast<__m512bh>(value[v]));
        }
      }
    }
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kColumns; ++v) {
      Simd::store(strip.sums[i] + column + v * 16, sums[i][v]);
    }
  }
}

template <typename Simd, std::size_t kRows>
void attend_chunk(const PagedHead<Float16>& head, std::span<const AttentionRow> rows,
                  const AttentionExtras& extras, std::size_t chunk, PairStrip<Simd, kRows>& strip) {
  const std::size_t begin = std::max(chunk, strip.begin);
  const std::size_t end = std::min(chunk + kChunk, strip.end);
  const std::size_t first = begin / kKvBlockTokens;
  const std::size_t last = (end + kKvBlockTokens - 1) / kKvBlockTokens;
  for_each_strip<4>(last - first, [&]<std::size_t kBlocks>(std::size_t block) {
    score_pairs<kBlocks>(head, first + block, first, last, (first + block) * kKvBlockTokens - chunk,
                         strip);
  });
  weigh_chunk(strip, rows, extras, chunk, end, head.head_size);
  for_each_strip<4>(head.head_size / 16, [&]<std::size_t kColumns>(std::size_t column) {
    combine_pairs<kColumns>(head, chunk, begin, end, column * 16, strip);
  });
}

}  // namespace muster::engine
