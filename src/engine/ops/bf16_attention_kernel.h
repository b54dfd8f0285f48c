#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "engine/ops/decoder_kernels.h"
#include "engine/ops/paged_attention_kernel.h"

namespace muster::engine {

// What attention in bf16 does to the rows of a strip between its two products, chunk by chunk:
// softmax relative to the largest score so far. What a row has so far is scaled down where a chunk
// has a larger one. Source: Milakov and Gimelshein 2018, "Online normalizer calculation for
// softmax", algorithm 3.
//
// A Strip has, for each of its rows, scores and weights of a chunk, sums (what is weighed so far),
// totals (of the weights so far, in 16 lanes) and the largest score, and begin and end: what any
// row of it sees; `take_query` keeps a row's query as its scores read it. Its type `Simd` is one of
// the including file's own.

inline constexpr std::size_t kGroup = 32;   // inputs of a tile: elements of a head, or positions
inline constexpr std::size_t kChunk = 128;  // scores and weights stay in the first-level cache
inline constexpr std::size_t kGroups = kChunk / kGroup;

/// 32 numbers rounded to bf16.
[[gnu::always_inline]] inline __m512bh rounded(__m512 low, __m512 high) {
  return _mm512_cvtne2ps_pbh(high, low);
}
[[gnu::always_inline]] inline __m512i bits_of(__m512bh value) {
  return reinterpret_cast<__m512i>(value);
}
/// The same numbers as floats, from place 0 or 16 on.
template <typename Simd, int kHalf>
[[gnu::always_inline]] inline __m512 widened(__m512bh value) {
  return Simd::widen(_mm512_extracti64x4_epi64(bits_of(value), kHalf));
}

/// A row's query, rounded to bf16, for a strip that keeps such: 32 elements at a time.
template <typename Strip>
[[gnu::always_inline]] inline void round_query(Strip& strip, std::size_t row, std::size_t head_size,
                                               const float* query) {
  using Simd = typename Strip::Simd;
  for (std::size_t c = 0; c < head_size; c += kGroup) {
    const std::size_t low = std::min<std::size_t>(head_size - c, 16);
    const std::size_t high = std::min<std::size_t>(head_size - c - low, 16);
    strip.put_query(
        row, c, rounded(Simd::load_first(query + c, low), Simd::load_first(query + c + low, high)));
  }
}

template <typename Strip>
void start_strip(Strip& strip, std::size_t head_size, std::span<const AttentionRow> rows) {
  using Simd = typename Strip::Simd;
  const auto zero = Simd::broadcast(0);
  strip.begin = rows[0].begin;
  strip.end = rows[0].end;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    strip.take_query(i, head_size, rows[i].query);
    for (std::size_t c = 0; c < head_size; c += kGroup) {
      Simd::store(strip.sums[i] + c, zero);
      Simd::store(strip.sums[i] + c + 16, zero);
    }
    Simd::store(strip.totals[i], zero);
    strip.largest[i] = -std::numeric_limits<float>::infinity();
    strip.begin = std::min<std::size_t>(strip.begin, rows[i].begin);
    strip.end = std::max<std::size_t>(strip.end, rows[i].end);
  }
}

/// 2^x for x <= 0 to 3e-6 of itself, which bf16's 2e-3 hides; below -126 it stays at 2^-126.
/// Source: Taylor's coefficients ln(2)^k / k! on +-1/2.
template <typename Simd>
[[gnu::always_inline]] inline __m512 power_of_two(__m512 x) {
  constexpr float kTerms[] = {9.61812911e-3F, 5.55041087e-2F, 0.240226507F, 0.693147181F, 1.0F};
  x = Simd::max(Simd::broadcast(-126.0F), x);  // the second one where x is not a number
  const auto n = Simd::round(x);
  const auto r = Simd::subtract(x, n);
  auto sum = Simd::broadcast(1.33335581e-3F);
  for (const float term : kTerms) sum = Simd::multiply_add(sum, r, Simd::broadcast(term));
  return Simd::scale_by_power(sum, n);
}

/// What a row sees of a chunk: [from, until), which is something.
struct Seen {
  std::size_t from = 0;
  std::size_t until = 0;

  [[gnu::always_inline]] bool has_chunk() const { return from == 0 && until == kChunk; }
  /// Whether it is none of `count` positions from `at` on.
  [[gnu::always_inline]] bool has_none(std::size_t at, std::size_t count) const {
    return until <= at || at + count <= from;
  }
  /// Which of 16 positions from `at` on.
  [[gnu::always_inline]] __mmask16 mask(std::size_t at) const {
    const std::size_t low = std::min<std::size_t>(from > at ? from - at : 0, 16);
    const std::size_t high = std::min<std::size_t>(until > at ? until - at : 0, 16);
    return static_cast<__mmask16>(((1U << high) - 1U) & (~0U << low));
  }
};

/// The largest of what the row sees and of what it saw before, after a cap where the family has
/// one. kWhole: it sees all of the chunk.
template <typename Simd, bool kWhole>
[[gnu::always_inline]] inline float cap_and_find_largest(const Seen& seen, float before,
                                                         float soft_cap, float* scores) {
  if (soft_cap > 0) {
    for (std::size_t p = seen.from; p < seen.until; ++p) {
      scores[p] = soft_cap * std::tanh(scores[p] / soft_cap);
    }
  }
  auto peak = Simd::broadcast(before);
  if constexpr (kWhole) {
#pragma GCC unroll 8
    for (std::size_t p = 0; p < kChunk; p += 16) peak = Simd::max(peak, Simd::load(scores + p));
    return Simd::largest(peak);
  }
  const auto lowest = Simd::broadcast(-std::numeric_limits<float>::infinity());
  for (std::size_t p = seen.from / 16 * 16; p < seen.until; p += 16) {
    peak = Simd::max(peak, _mm512_mask_mov_ps(lowest, seen.mask(p), Simd::load(scores + p)));
  }
  return Simd::largest(peak);
}

/// 16 weights: 2^((score - largest) log2(e)).
template <typename Simd>
[[gnu::always_inline]] inline __m512 weights_of(__m512 scores, __m512 largest) {
  const auto log2e = Simd::broadcast(1.44269504F);
  return power_of_two<Simd>(Simd::multiply(Simd::subtract(scores, largest), log2e));
}

/// What a row has so far, for a larger score than the largest.
template <typename Strip>
[[gnu::always_inline]] inline void scale_down(Strip& strip, std::size_t i, float before, float now,
                                              std::size_t head_size) {
  using Simd = typename Strip::Simd;
  const auto factor = weights_of<Simd>(Simd::broadcast(before), Simd::broadcast(now));
  Simd::store(strip.totals[i], Simd::multiply(Simd::load(strip.totals[i]), factor));
  for (std::size_t c = 0; c < head_size; c += 16) {
    Simd::store(strip.sums[i] + c, Simd::multiply(Simd::load(strip.sums[i] + c), factor));
  }
}

/// Makes one row's scores of a chunk weights.
template <bool kWhole, typename Strip>
[[gnu::always_inline]] inline void weigh_row(Strip& strip, std::size_t i, const Seen& seen,
                                             std::size_t group_count, std::size_t head_size,
                                             const AttentionExtras& extras) {
  using Simd = typename Strip::Simd;
  float* scores = strip.scores[i];
  const float before = strip.largest[i];
  const float now = cap_and_find_largest<Simd, kWhole>(seen, before, extras.soft_cap, scores);
  strip.largest[i] = now;
  if (now != before && before > -std::numeric_limits<float>::infinity()) {
    scale_down(strip, i, before, now, head_size);
  }
  const auto largest = Simd::broadcast(now);
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f80));
  auto total = Simd::load(strip.totals[i]);
  const std::size_t count = kWhole ? kGroups : group_count;
#pragma GCC unroll 4
  for (std::size_t g = 0; g < count; ++g) {
    const std::size_t p = g * kGroup;
    auto low = Simd::broadcast(0);
    auto high = low;
    if (kWhole || !seen.has_none(p, kGroup)) {
      low = weights_of<Simd>(Simd::load(scores + p), largest);
      high = weights_of<Simd>(Simd::load(scores + p + 16), largest);
    }
    if constexpr (!kWhole) {
      low = _mm512_maskz_mov_ps(seen.mask(p), low);
      high = _mm512_maskz_mov_ps(seen.mask(p + 16), high);
    }
    // The sum is that of the rounded weights: what is weighed is divided by what it was weighed
    // by, so the mean of equal values is that value.
    const auto weights = rounded(low, high);
    strip.put_weights(i, p, weights);
    total = _mm512_dpbf16_ps(total, weights, ones);
  }
  Simd::store(strip.totals[i], total);
}

/// Makes all rows' scores of the chunk that ends at `end` weights.
template <typename Strip>
void weigh_chunk(Strip& strip, std::span<const AttentionRow> rows, const AttentionExtras& extras,
                 std::size_t chunk, std::size_t end, std::size_t head_size) {
  using Simd = typename Strip::Simd;
  const std::size_t group_count = (end - chunk + kGroup - 1) / kGroup;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t from = std::max<std::size_t>(rows[i].begin, chunk);
    const std::size_t until = std::min<std::size_t>(rows[i].end, end);
    const Seen seen{from - chunk, std::max(from, until) - chunk};
    if (seen.has_chunk()) {
      weigh_row<true>(strip, i, seen, group_count, head_size, extras);
      continue;
    }
    if (from < until) {
      weigh_row<false>(strip, i, seen, group_count, head_size, extras);
      continue;
    }
    const auto zero = Simd::broadcast(0);
    for (std::size_t g = 0; g < group_count; ++g) {
      strip.put_weights(i, g * kGroup, rounded(zero, zero));
    }
  }
}

/// A tile's zero may have a sign, which the zeros of positions that a row does not see would take
/// away: in the result it has none.
template <typename Strip>
void finish_row(const Strip& strip, std::size_t i, std::size_t head_size, const AttentionRow& row) {
  using Simd = typename Strip::Simd;
  const auto inverse = Simd::broadcast(1.0F / Simd::sum(Simd::load(strip.totals[i])));
  for (std::size_t c = 0; c < head_size; c += 16) {
    const auto value =
        Simd::multiply_add(Simd::load(strip.sums[i] + c), inverse, Simd::broadcast(0));
    Simd::store_first(row.out + c, value, std::min<std::size_t>(head_size - c, 16));
  }
}

/// All chunks of a strip. Returns which rows are to be computed once more, alone, a bit each.
template <typename Strip>
std::uint32_t attend_chunks(const PagedHead<Float16>& head, std::span<const AttentionRow> rows,
                            const AttentionExtras& extras, Strip& strip) {
  static_assert(sizeof(strip) <= std::size_t{60} << 10U);  // of the stack
  for (std::size_t chunk = strip.begin / kChunk * kChunk; chunk < strip.end; chunk += kChunk) {
    attend_chunk(head, rows, extras, chunk, strip);
  }
  std::uint32_t lost = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    finish_row(strip, i, head.head_size, rows[i]);
    const bool sees_all = rows[i].begin == strip.begin && rows[i].end == strip.end;
    if (!sees_all && is_lost<typename Strip::Simd>(rows[i], head.head_size)) lost |= 1U << i;
  }
  return lost;
}

/// The same from the start, on a Strip of its own.
template <typename Strip>
[[gnu::noinline]] std::uint32_t attend_strip_as(const PagedHead<Float16>& head,
                                                std::span<const AttentionRow> rows,
                                                const AttentionExtras& extras) {
  Strip strip;
  start_strip(strip, head.head_size, rows);
  return attend_chunks(head, rows, extras, strip);
}

}  // namespace muster::engine
