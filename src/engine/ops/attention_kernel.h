#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "engine/ops/kernels.h"
#include "engine/ops/strips.h"

namespace muster::engine {

// Attention of one sequence, one head after the other, in three steps per block of query rows:
// scores (a product with the transposed keys), softmax, weighted sum of the values. Keys and values
// are copied once per head into dense float32 tables, so bf16 is converted once and the strided
// rows of the fused product do not collide in the first-level cache.
//
// Shape letters: L rows of the sequence, D head size, W vector width; "wide" means rounded up to W.

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// e^x for x <= 0, about 1 unit in the last place; below -87 it stays at e^-87 (1.6e-38). What is
/// not a number stays none.
/// Source: range reduction by Cody and Waite 1980; Taylor's coefficients to degree 7 on +-ln(2)/2,
/// where the next term is below 6e-9 of the value.
template <typename Simd>
typename Simd::Vector exp_of_negative(typename Simd::Vector x) {
  constexpr float kTerms[] = {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F};
  x = Simd::max(Simd::broadcast(-87.0F), x);  // the second one where x is not a number
  const auto n = Simd::round(Simd::multiply(x, Simd::broadcast(1.44269504F)));  // x / ln 2
  auto r = Simd::multiply_add(n, Simd::broadcast(-0.693359375F), x);  // upper bits of ln 2
  r = Simd::multiply_add(n, Simd::broadcast(2.12194440e-4F), r);      // the rest
  auto sum = Simd::broadcast(1.0F / 5040);
  for (const float term : kTerms) sum = Simd::multiply_add(sum, r, Simd::broadcast(term));
  return Simd::scale_by_power(sum, n);
}

/// The tables of one head and one block of queries, inside the lane's scratch.
struct HeadTables {
  std::size_t length = 0;       // L
  std::size_t head_size = 0;    // D
  std::size_t length_wide = 0;  // L rounded up
  std::size_t size_wide = 0;    // D rounded up
  float* keys = nullptr;        // [D wide, L wide], transposed
  float* values = nullptr;      // [L, D wide]
  float* queries = nullptr;     // [rows, D], scaled
  float* scores = nullptr;      // [rows, L wide]
};

template <typename Simd>
std::size_t attention_scratch_size(const AttentionShape& shape, std::size_t length) {
  const std::size_t length_wide = round_up(length, Simd::kWidth);
  const std::size_t size_wide = round_up(shape.head_size, Simd::kWidth);
  return 2 * size_wide * length_wide + Simd::kRowsMax * (size_wide + length_wide);
}

template <typename Simd>
HeadTables lay_out_tables(const AttentionShape& shape, std::size_t length, float* scratch) {
  HeadTables tables;
  tables.length = length;
  tables.head_size = shape.head_size;
  tables.length_wide = round_up(length, Simd::kWidth);
  tables.size_wide = round_up(shape.head_size, Simd::kWidth);
  const std::size_t key_count = tables.size_wide * tables.length_wide;
  tables.keys = scratch;
  tables.values = tables.keys + key_count;
  tables.queries = tables.values + key_count;
  tables.scores = tables.queries + Simd::kRowsMax * tables.size_wide;
  return tables;
}

/// Fills `keys` with the transposed K: W rows by W columns at a time, zeros where either ends.
template <typename Simd, typename T>
void pack_keys(const HeadTables& tables, std::span<const T* const> rows, std::size_t column) {
  constexpr std::size_t kWidth = Simd::kWidth;
  for (std::size_t j = 0; j < tables.length; j += kWidth) {
    const auto row_count = std::min(kWidth, tables.length - j);
    for (std::size_t c = 0; c < tables.head_size; c += kWidth) {
      const auto column_count = std::min(kWidth, tables.head_size - c);
      typename Simd::Vector tile[kWidth];
      for (std::size_t i = 0; i < kWidth; ++i) {
        if (i >= row_count) {
          tile[i] = Simd::broadcast(0);
        } else if (column_count == kWidth) {
          tile[i] = Simd::load(rows[j + i] + column + c);
        } else {
          tile[i] = Simd::load_first(rows[j + i] + column + c, column_count);
        }
      }
      Simd::transpose(tile);
      for (std::size_t i = 0; i < kWidth; ++i) {
        Simd::store(tables.keys + (c + i) * tables.length_wide + j, tile[i]);
      }
    }
  }
}

template <typename Simd, typename T>
void pack_values(const HeadTables& tables, std::span<const T* const> rows, std::size_t column) {
  for (std::size_t j = 0; j < tables.length; ++j) {
    float* to = tables.values + j * tables.size_wide;
    const T* from = rows[j] + column;
    std::size_t c = 0;
    for (; c + Simd::kWidth <= tables.head_size; c += Simd::kWidth) {
      Simd::store(to + c, Simd::load(from + c));
    }
    if (c < tables.head_size) {
      Simd::store(to + c, Simd::load_first(from + c, tables.head_size - c));
    }
  }
}

template <typename T>
void pack_queries(const HeadTables& tables, std::span<const T* const> rows, std::size_t column) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(tables.head_size));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    float* to = tables.queries + i * tables.head_size;
    for (std::size_t c = 0; c < tables.head_size; ++c)
      to[c] = to_float(rows[i][column + c]) * scale;
  }
}

/// sums[i][v] = sum over c of weights[i][c] * table[c][v]. Both products of attention are this, in
/// the same order of additions for every row. Inlined and unrolled by order: the kRows x kVectors
/// sums must stay in registers, and g++ 12 on its own leaves them in memory at a third of the
/// speed.
template <typename Simd, std::size_t kRows, std::size_t kVectors>
[[gnu::always_inline]] inline void multiply_block(const float* weights, std::size_t weights_stride,
                                                  const float* table, std::size_t table_stride,
                                                  std::size_t term_count,
                                                  typename Simd::Vector (&sums)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) sums[i][v] = Simd::broadcast(0);
  }
  for (std::size_t c = 0; c < term_count; ++c) {
    typename Simd::Vector column[kVectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      column[v] = Simd::load(table + c * table_stride + v * Simd::kWidth);
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto weight = Simd::broadcast(weights[i * weights_stride + c]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[i][v] = Simd::multiply_add(weight, column[v], sums[i][v]);
      }
    }
  }
}

template <typename Simd, std::size_t kRows>
void score_rows(const HeadTables& tables) {
  for_each_strip<Simd::kVectorsMax>(
      tables.length_wide / Simd::kWidth, [&]<std::size_t kVectors>(std::size_t begin) {
        typename Simd::Vector sums[kRows][kVectors];
        multiply_block<Simd, kRows, kVectors>(tables.queries, tables.head_size,
                                              tables.keys + begin * Simd::kWidth,
                                              tables.length_wide, tables.head_size, sums);
#pragma GCC unroll 8
        for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
          for (std::size_t v = 0; v < kVectors; ++v) {
            Simd::store(tables.scores + i * tables.length_wide + (begin + v) * Simd::kWidth,
                        sums[i][v]);
          }
        }
      });
}

/// Turns one row of scores into e^(score - max) and returns their sum.
template <typename Simd>
float exponentiate_row(float* scores, std::size_t length, const float* bias) {
  using Vector = typename Simd::Vector;
  const Vector lowest = Simd::broadcast(-std::numeric_limits<float>::infinity());
  Vector peak = lowest;
  for (std::size_t j = 0; j < length; j += Simd::kWidth) {
    const auto count = std::min(Simd::kWidth, length - j);
    Vector score = Simd::load(scores + j);
    if (bias != nullptr) score = Simd::add(score, Simd::load_first(bias + j, count));
    if (count < Simd::kWidth) score = Simd::first(score, lowest, count);
    if (bias != nullptr) Simd::store(scores + j, score);
    peak = Simd::max(peak, score);
  }
  const Vector largest = Simd::broadcast(Simd::largest(peak));
  Vector total = Simd::broadcast(0);
  for (std::size_t j = 0; j < length; j += Simd::kWidth) {
    const auto count = std::min(Simd::kWidth, length - j);
    Vector weight = exp_of_negative<Simd>(Simd::subtract(Simd::load(scores + j), largest));
    if (count < Simd::kWidth) weight = Simd::first(weight, Simd::broadcast(0), count);
    Simd::store(scores + j, weight);
    total = Simd::add(total, weight);
  }
  return Simd::sum(total);
}

template <typename Simd, std::size_t kRows, typename T>
void combine_rows(const HeadTables& tables, const float (&inverse_sums)[Simd::kRowsMax], T* out,
                  std::size_t out_stride) {
  for_each_strip<Simd::kVectorsMax>(
      tables.size_wide / Simd::kWidth, [&]<std::size_t kVectors>(std::size_t begin) {
        typename Simd::Vector sums[kRows][kVectors];
        multiply_block<Simd, kRows, kVectors>(tables.scores, tables.length_wide,
                                              tables.values + begin * Simd::kWidth,
                                              tables.size_wide, tables.length, sums);
#pragma GCC unroll 8
        for (std::size_t i = 0; i < kRows; ++i) {
          const auto inverse = Simd::broadcast(inverse_sums[i]);
#pragma GCC unroll 8
          for (std::size_t v = 0; v < kVectors; ++v) {
            const auto at = (begin + v) * Simd::kWidth;
            const auto count = std::min(Simd::kWidth, tables.head_size - at);
            const auto value = Simd::multiply(sums[i][v], inverse);
            if (count == Simd::kWidth) {
              Simd::store(out + i * out_stride + at, value);
            } else {
              Simd::store_first(out + i * out_stride + at, value, count);
            }
          }
        }
      });
}

/// One head of one sequence, for the queries of `strips`; `is_packed`: keys and values are in the
/// tables.
template <typename Simd, typename T>
void attend_head(const AttentionShape& shape, std::uint32_t head, const StripPart& strips,
                 bool is_packed, std::span<const T* const> rows, const HeadTables& tables, T* out) {
  const std::size_t hidden = std::size_t{shape.head_count} * shape.head_size;
  const std::size_t column = std::size_t{head} * shape.head_size;
  if (!is_packed) {
    pack_keys<Simd>(tables, rows, hidden + column);
    pack_values<Simd>(tables, rows, 2 * hidden + column);
  }
  const float* bias = shape.relative_bias == nullptr
                          ? nullptr
                          : shape.relative_bias + head * shape.relative_bias_stride +
                                shape.relative_bias_stride / 2;
  for_each_strip_of<Simd::kRowsMax>(strips, rows.size(), [&]<std::size_t kRows>(std::size_t begin) {
    pack_queries(tables, rows.subspan(begin, kRows), column);
    score_rows<Simd, kRows>(tables);
    float inverse_sums[Simd::kRowsMax];
    for (std::size_t i = 0; i < kRows; ++i) {
      const float* row_bias = bias == nullptr ? nullptr : bias - (begin + i);
      inverse_sums[i] = 1.0F / exponentiate_row<Simd>(tables.scores + i * tables.length_wide,
                                                      tables.length, row_bias);
    }
    combine_rows<Simd, kRows>(tables, inverse_sums, out + begin * hidden + column, hidden);
  });
}

template <typename Simd, typename T>
void attend(const AttentionShape& shape, const AttentionPart& part, std::span<const T* const> rows,
            T* out, float* scratch) {
  const auto tables = lay_out_tables<Simd>(shape, rows.size(), scratch);
  const StripPart strips{.index = part.query_part, .count = part.query_part_count};
  for (std::uint32_t head = part.head_begin; head < part.head_end; ++head) {
    const bool is_packed = part.is_packed && head == part.head_begin;
    attend_head<Simd>(shape, head, strips, is_packed, rows, tables, out);
  }
}

}  // namespace muster::engine
