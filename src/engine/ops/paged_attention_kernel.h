#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "engine/ops/attention_kernel.h"
#include "engine/ops/decoder_kernels.h"
#include "engine/ops/layer_norm_kernel.h"
#include "engine/ops/strips.h"

namespace muster::engine {

// Attention over a paged cache, for a strip of rows of one sequence that share a head of keys, in
// three steps: scores of all positions that any row of the strip sees, softmax of each row's own
// positions, weighted sum of the values. A position that a row does not see gets weight zero, which
// changes no bit of its sums: a row's result depends on its own positions alone, in their order.
// Where the value of such a position is not finite, the row is computed once more, alone.
//
// Keys and values of 8 bits are summed as they are: a score is multiplied by its key's scale at the
// end of its sum, and a weight by its value's scale before the weighted sum.

/// Whether keys and values have scales.
template <typename T>
inline constexpr bool kHasScales = std::is_same_v<T, std::int8_t>;

/// scores[i][p] = query_i key_p for the positions of kBlocks blocks from `block` on.
template <typename Simd, std::size_t kRows, std::size_t kBlocks, typename T>
[[gnu::always_inline]] inline void score_run(const PagedHead<T>& head,
                                             std::span<const AttentionRow> rows, std::size_t block,
                                             float* scores, std::size_t stride) {
  using Vector = typename Simd::Vector;
  constexpr std::size_t kPerBlock = kKvBlockTokens / Simd::kWidth;
  constexpr std::size_t kVectors = kBlocks * kPerBlock;
  const T* keys[kBlocks];
  for (std::size_t b = 0; b < kBlocks; ++b) keys[b] = head.keys(block + b);
  Vector sums[kRows][kVectors];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) sums[i][v] = Simd::broadcast(0);
  }
  for (std::size_t c = 0; c < head.head_size; ++c) {
    Vector column[kVectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      column[v] =
          Simd::load(keys[v / kPerBlock] + c * kKvBlockTokens + v % kPerBlock * Simd::kWidth);
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      const Vector query = Simd::broadcast(rows[i].query[c]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[i][v] = Simd::multiply_add(query, column[v], sums[i][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (std::size_t v = 0; v < kVectors; ++v) {
    const std::size_t in_block = v % kPerBlock * Simd::kWidth;
    if constexpr (kHasScales<T>) {
      const Vector scale = Simd::load(head.key_scales(block + v / kPerBlock) + in_block);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kRows; ++i) sums[i][v] = Simd::multiply(sums[i][v], scale);
    }
    float* to = scores + (block + v / kPerBlock) * kKvBlockTokens + in_block;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) Simd::store(to + i * stride, sums[i][v]);
  }
}

/// As score_run for the blocks [first, last), kBlocks of them at once, then half as many.
template <typename Simd, std::size_t kRows, std::size_t kBlocks, typename T>
void score_in_runs(const PagedHead<T>& head, std::span<const AttentionRow> rows, std::size_t first,
                   std::size_t last, float* scores, std::size_t stride) {
  for (; first + kBlocks <= last; first += kBlocks) {
    score_run<Simd, kRows, kBlocks>(head, rows, first, scores, stride);
  }
  if constexpr (kBlocks > 1) {
    score_in_runs<Simd, kRows, kBlocks / 2>(head, rows, first, last, scores, stride);
  }
}

/// A sum waits four cycles for its next product, and a block alone has one or two sums a row: so
/// four blocks are taken at once, or two, where registers hold their sums.
template <typename Simd, std::size_t kRows, typename T>
void score_blocks(const PagedHead<T>& head, std::span<const AttentionRow> rows, std::size_t first,
                  std::size_t last, float* scores, std::size_t stride) {
  constexpr std::size_t kSumsOfBlock = kRows * (kKvBlockTokens / Simd::kWidth);
  constexpr std::size_t kRoom = Simd::kRowsMax * Simd::kVectorsMax / kSumsOfBlock;
  constexpr std::size_t kBlocks = kRoom >= 4 ? 4 : kRoom >= 2 ? 2 : 1;
  score_in_runs<Simd, kRows, kBlocks>(head, rows, first, last, scores, stride);
}

/// Caps one row's scores, where the family does, and makes them e^(score - largest) within what the
/// row sees and 0 elsewhere; their sum.
template <typename Simd>
float weigh_scores(const AttentionRow& row, const AttentionExtras& extras, float* scores,
                   std::size_t first, std::size_t last) {
  using Vector = typename Simd::Vector;
  if (extras.soft_cap > 0) {
    for (std::size_t p = row.begin; p < row.end; ++p) {
      scores[p] = extras.soft_cap * std::tanh(scores[p] / extras.soft_cap);
    }
  }
  const float lowest = -std::numeric_limits<float>::infinity();
  std::fill(scores + first, scores + std::max<std::size_t>(first, row.begin), lowest);
  std::fill(scores + row.end, scores + last, lowest);
  Vector peak = Simd::broadcast(lowest);
  for (std::size_t p = first; p < last; p += Simd::kWidth) {
    peak = Simd::max(peak, Simd::load(scores + p));
  }
  const Vector largest = Simd::broadcast(Simd::largest(peak));
  Vector total = Simd::broadcast(0);
  for (std::size_t p = first; p < last; p += Simd::kWidth) {
    const auto weight = exp_of_negative<Simd>(Simd::subtract(Simd::load(scores + p), largest));
    Simd::store(scores + p, weight);
    if (p >= row.begin && p + Simd::kWidth <= row.end) total = Simd::add(total, weight);
  }
  // e^-infinity came out as e^-87, so the ends are cleared, and the vectors that hold them summed
  // by what is left.
  std::fill(scores + first, scores + std::max<std::size_t>(first, row.begin), 0.0F);
  std::fill(scores + row.end, scores + last, 0.0F);
  for (std::size_t p = first; p < last; p += Simd::kWidth) {
    const bool is_whole = p >= row.begin && p + Simd::kWidth <= row.end;
    if (!is_whole) total = Simd::add(total, Simd::load(scores + p));
  }
  return Simd::sum(total);
}

/// weights[p] *= the scale of value p, for the positions of the blocks [first, last).
template <typename Simd>
void scale_weights(const PagedHead<std::int8_t>& head, std::size_t first, std::size_t last,
                   float* weights) {
  for (std::size_t block = first; block < last; ++block) {
    const float* scales = head.value_scales(block);
    float* of_block = weights + block * kKvBlockTokens;
    for (std::size_t at = 0; at < kKvBlockTokens; at += Simd::kWidth) {
      Simd::store(of_block + at,
                  Simd::multiply(Simd::load(of_block + at), Simd::load(scales + at)));
    }
  }
}

/// out_i = (sum over p of weights[i][p] value_p) / sum_i for kVectors vectors of a head from column
/// `column` on.
template <typename Simd, std::size_t kRows, std::size_t kVectors, typename T>
[[gnu::always_inline]] inline void combine_values(const PagedHead<T>& head,
                                                  std::span<const AttentionRow> rows,
                                                  std::size_t begin, std::size_t end,
                                                  const float* weights, std::size_t stride,
                                                  const float* inverse_sums, std::size_t column) {
  using Vector = typename Simd::Vector;
  Vector sums[kRows][kVectors];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) sums[i][v] = Simd::broadcast(0);
  }
  for (std::size_t p = begin; p < end;) {
    const std::size_t until = std::min(end, (p / kKvBlockTokens + 1) * kKvBlockTokens);
    const T* values =
        head.values(p / kKvBlockTokens) + p % kKvBlockTokens * head.head_size + column;
    for (; p < until; ++p, values += head.head_size) {
      Vector part[kVectors];
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) part[v] = Simd::load(values + v * Simd::kWidth);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kRows; ++i) {
        const Vector weight = Simd::broadcast(weights[i * stride + p]);
#pragma GCC unroll 8
        for (std::size_t v = 0; v < kVectors; ++v) {
          sums[i][v] = Simd::multiply_add(weight, part[v], sums[i][v]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
    const Vector inverse = Simd::broadcast(inverse_sums[i]);
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t at = column + v * Simd::kWidth;
      const std::size_t count = std::min(Simd::kWidth, head.head_size - at);
      store_some<Simd>(rows[i].out + at, Simd::multiply(sums[i][v], inverse), count);
    }
  }
}

/// Whether something of a row's result is not finite: times zero it is not zero.
template <typename Simd>
bool is_lost(const AttentionRow& row, std::size_t head_size) {
  const auto zero = Simd::broadcast(0);
  auto zeros = zero;
  for (std::size_t at = 0; at < head_size; at += Simd::kWidth) {
    const std::size_t count = std::min(Simd::kWidth, head_size - at);
    zeros = Simd::multiply_add(load_some<Simd>(row.out + at, count), zero, zeros);
  }
  return Simd::sum(zeros) != 0;
}

template <typename Simd, std::size_t kRows, typename T>
void attend_strip(const PagedHead<T>& head, std::span<const AttentionRow> rows,
                  const AttentionExtras& extras, float* scratch) {
  std::size_t begin = rows[0].begin;
  std::size_t end = rows[0].end;
  for (std::size_t i = 1; i < kRows; ++i) {
    begin = std::min<std::size_t>(begin, rows[i].begin);
    end = std::max<std::size_t>(end, rows[i].end);
  }
  const std::size_t first = begin / kKvBlockTokens;
  const std::size_t last = (end + kKvBlockTokens - 1) / kKvBlockTokens;
  const std::size_t stride = last * kKvBlockTokens;
  score_blocks<Simd, kRows>(head, rows, first, last, scratch, stride);
  float inverse_sums[kRows];
  for (std::size_t i = 0; i < kRows; ++i) {
    inverse_sums[i] = 1.0F / weigh_scores<Simd>(rows[i], extras, scratch + i * stride,
                                                first * kKvBlockTokens, stride);
    if constexpr (kHasScales<T>) scale_weights<Simd>(head, first, last, scratch + i * stride);
  }
  for_each_strip<Simd::kVectorsMax>((head.head_size + Simd::kWidth - 1) / Simd::kWidth,
                                    [&]<std::size_t kVectors>(std::size_t vector) {
                                      combine_values<Simd, kRows, kVectors>(
                                          head, rows, begin, end, scratch, stride, inverse_sums,
                                          vector * Simd::kWidth);
                                    });
  if constexpr (kRows > 1) {
    for (std::size_t i = 0; i < kRows; ++i) {
      const bool sees_all = rows[i].begin == begin && rows[i].end == end;
      if (sees_all || !is_lost<Simd>(rows[i], head.head_size)) continue;
      attend_strip<Simd, 1>(head, rows.subspan(i, 1), extras, scratch);
    }
  }
}

template <typename Simd, typename T>
void attend_paged(const PagedHead<T>& head, std::span<const AttentionRow> rows,
                  const AttentionExtras& extras, float* scratch) {
  for_each_strip<Simd::kRowsMax>(rows.size(), [&]<std::size_t kRows>(std::size_t begin) {
    attend_strip<Simd, kRows>(head, rows.subspan(begin, kRows), extras, scratch);
  });
}

}  // namespace muster::engine
