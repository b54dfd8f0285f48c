#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "engine/ops/bf16_attention_kernel.h"
#include "engine/ops/decoder_kernels.h"
#include "engine/ops/strips.h"

namespace muster::engine {

// Attention in bf16 for few rows, which leave tiles nearly empty: the tiles' sums, bit by bit, by
// vectors. Of 32 inputs the even and the odd ones are summed by themselves from zero, both are
// added, and their sum to what is there; denormal numbers must count as zero.

/// What rows of up to three have: the same numbers as floats.
template <typename OwnSimd, std::size_t kCount>
struct FewStrip {
  using Simd = OwnSimd;
  static constexpr std::size_t kRows = kCount;
  static constexpr std::size_t kHeadMax = 256;

  alignas(64) float queries[kRows][kHeadMax];
  alignas(64) float scores[kRows][kChunk];
  alignas(64) float weights[kRows][kChunk];
  alignas(64) float sums[kRows][kHeadMax];
  alignas(64) float totals[kRows][16];
  float largest[kRows];
  std::size_t begin;
  std::size_t end;

  [[gnu::always_inline]] void take_query(std::size_t row, std::size_t head_size,
                                         const float* query) {
    round_query(*this, row, head_size, query);
  }
  [[gnu::always_inline]] void put_query(std::size_t row, std::size_t at, __m512bh values) {
    Simd::store(queries[row] + at, widened<Simd, 0>(values));
    Simd::store(queries[row] + at + 16, widened<Simd, 1>(values));
  }
  [[gnu::always_inline]] void put_weights(std::size_t row, std::size_t at, __m512bh values) {
    Simd::store(weights[row] + at, widened<Simd, 0>(values));
    Simd::store(weights[row] + at + 16, widened<Simd, 1>(values));
  }
};

/// Scores of kBlocks blocks from `block` on.
template <std::size_t kBlocks, typename Simd, std::size_t kRows>
[[gnu::always_inline]] inline void score_few(const PagedHead<Float16>& head, std::size_t block,
                                             std::size_t column, FewStrip<Simd, kRows>& strip) {
  const Float16* keys[kBlocks];
  __m512 sums[kRows][kBlocks];
#pragma GCC unroll 8
  for (std::size_t b = 0; b < kBlocks; ++b) {
    keys[b] = head.keys(block + b);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) sums[i][b] = Simd::broadcast(0);
  }
  for (std::size_t c = 0; c < head.head_size; c += kGroup) {
    __m512 parts[2][kRows][kBlocks];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (std::size_t b = 0; b < kBlocks; ++b) {
        parts[0][i][b] = parts[1][i][b] = Simd::broadcast(0);
      }
    }
    const std::size_t until = std::min(c + kGroup, head.head_size);
    const auto add = [&]<int kOdd>(std::size_t at) __attribute__((always_inline)) {
      __m512 key[kBlocks];
#pragma GCC unroll 8
      for (std::size_t b = 0; b < kBlocks; ++b) {
        key[b] = Simd::load(keys[b] + at * kKvBlockTokens);
      }
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kRows; ++i) {
        const auto query = Simd::broadcast(strip.queries[i][at]);
#pragma GCC unroll 8
        for (std::size_t b = 0; b < kBlocks; ++b) {
          parts[kOdd][i][b] = Simd::multiply_add(query, key[b], parts[kOdd][i][b]);
        }
      }
    };
    std::size_t at = c;
    for (; at + 2 <= until; at += 2) {
      add.template operator()<0>(at);
      add.template operator()<1>(at + 1);
    }
    if (at < until) add.template operator()<0>(at);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (std::size_t b = 0; b < kBlocks; ++b) {
        sums[i][b] = Simd::add(sums[i][b], Simd::add(parts[0][i][b], parts[1][i][b]));
      }
    }
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (std::size_t b = 0; b < kBlocks; ++b) {
      Simd::store(strip.scores[i] + column + b * kKvBlockTokens, sums[i][b]);
    }
  }
}

/// sums += weights values of the positions [begin, end) of a chunk, for kColumns vectors of columns
/// from `column` on.
template <std::size_t kColumns, typename Simd, std::size_t kRows>
[[gnu::always_inline]] inline void combine_few(const PagedHead<Float16>& head, std::size_t chunk,
                                               std::size_t begin, std::size_t end,
                                               std::size_t column, FewStrip<Simd, kRows>& strip) {
  for (std::size_t p = begin; p < end;) {
    const std::size_t until = std::min(end, (p / kGroup + 1) * kGroup);
    __m512 parts[2][kRows][kColumns];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kColumns; ++v) {
        parts[0][i][v] = parts[1][i][v] = Simd::broadcast(0);
      }
    }
    const auto add = [&]<int kOdd>(const Float16* values, const float* weights)
        __attribute__((always_inline)) {
      __m512 value[kColumns];
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kColumns; ++v) value[v] = Simd::load(values + v * 16);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kRows; ++i) {
        const auto weight = Simd::broadcast(weights[i * kChunk]);
#pragma GCC unroll 8
        for (std::size_t v = 0; v < kColumns; ++v) {
          parts[kOdd][i][v] = Simd::multiply_add(weight, value[v], parts[kOdd][i][v]);
        }
      }
    };
    while (p < until) {
      const std::size_t of_block = std::min(until, (p / kKvBlockTokens + 1) * kKvBlockTokens);
      const Float16* values =
          head.values(p / kKvBlockTokens) + p % kKvBlockTokens * head.head_size + column;
      const float* weights = strip.weights[0] + (p - chunk);
      if (p % 2 != 0) {
        add.template operator()<1>(values, weights);
        values += head.head_size;
        ++weights;
        ++p;
      }
      for (; p + 2 <= of_block; p += 2) {
        add.template operator()<0>(values, weights);
        add.template operator()<1>(values + head.head_size, weights + 1);
        values += 2 * head.head_size;
        weights += 2;
      }
      if (p < of_block) {
        add.template operator()<0>(values, weights);
        ++p;
      }
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kColumns; ++v) {
        float* sum = strip.sums[i] + column + v * 16;
        const auto part = Simd::add(parts[0][i][v], parts[1][i][v]);
        Simd::store(sum, Simd::add(Simd::load(sum), part));
      }
    }
  }
}

template <typename Simd, std::size_t kRows>
void attend_chunk(const PagedHead<Float16>& head, std::span<const AttentionRow> rows,
                  const AttentionExtras& extras, std::size_t chunk, FewStrip<Simd, kRows>& strip) {
  const std::size_t begin = std::max(chunk, strip.begin);
  const std::size_t end = std::min(chunk + kChunk, strip.end);
  const std::size_t first = begin / kKvBlockTokens;
  const std::size_t last = (end + kKvBlockTokens - 1) / kKvBlockTokens;
  for_each_strip<(kRows == 3 ? 2 : 4)>(last - first, [&]<std::size_t kBlocks>(std::size_t block) {
    score_few<kBlocks>(head, first + block, (first + block) * kKvBlockTokens - chunk, strip);
  });
  weigh_chunk(strip, rows, extras, chunk, end, head.head_size);
  for_each_strip<4>((head.head_size + 15) / 16, [&]<std::size_t kColumns>(std::size_t column) {
    combine_few<kColumns>(head, chunk, begin, end, column * 16, strip);
  });
}

}  // namespace muster::engine
