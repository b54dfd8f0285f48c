#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/ops/amx_tiles.h"
#include "engine/ops/bf16_attention_kernel.h"
#include "engine/ops/decoder_kernels.h"
#include "engine/ops/strips.h"

namespace muster::engine {

// Both products of attention by tiles. Keys and values are made tiles of bf16 as they are needed.

/// Two rows of 16 numbers, as a row of a tile has them: side by side by columns. What the cache
/// keeps are numbers of bf16, so their lower halves are empty.
[[gnu::always_inline]] inline __m512i paired(__m512 even, __m512 odd) {
  return _mm512_mask_blend_epi16(0xaaaaaaaaU, _mm512_srli_epi32(_mm512_castps_si512(even), 16),
                                 _mm512_castps_si512(odd));
}

/// What a strip has while it goes through the chunks. Rows of the cache behind a head's last
/// element are zeros here, so a head of any size is whole tiles.
template <typename OwnSimd, int kRowTiles, std::size_t kHeadMax>
struct TileStrip {
  using Simd = OwnSimd;
  static constexpr std::size_t kRows = kRowTiles * kTileRows;

  alignas(64) std::uint16_t queries[kHeadMax / kGroup][kRows][kGroup];
  alignas(64) float scores[kRows][kChunk];
  alignas(64) std::uint16_t weights[kRows][kChunk];
  alignas(64) float sums[kRows][kHeadMax];
  alignas(64) float totals[kRows][16];
  float largest[kRows];
  alignas(64) std::byte tiles[2][kTileRows * kTileRowBytes];
  std::size_t begin;  // what any row of the strip sees
  std::size_t end;

  [[gnu::always_inline]] void take_query(std::size_t row, std::size_t head_size,
                                         const float* query) {
    round_query(*this, row, head_size, query);
  }
  [[gnu::always_inline]] void put_query(std::size_t row, std::size_t at, __m512bh values) {
    _mm512_store_si512(queries[at / kGroup][row], bits_of(values));
  }
  [[gnu::always_inline]] void put_weights(std::size_t row, std::size_t at, __m512bh values) {
    _mm512_store_si512(weights[row] + at, bits_of(values));
  }
};

/// 32 elements of the keys of a block, of which so many are the head's.
template <typename Simd>
[[gnu::always_inline]] inline void put_keys(const Float16* keys, std::size_t left,
                                            std::byte* tile) {
  if (left >= kGroup) {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kTileRows; ++k) {
      _mm512_store_si512(tile + k * kTileRowBytes,
                         paired(Simd::load(keys + 2 * k * kKvBlockTokens),
                                Simd::load(keys + (2 * k + 1) * kKvBlockTokens)));
    }
    return;
  }
  for (std::size_t k = 0; k < kTileRows; ++k) {
    const auto zero = Simd::broadcast(0);
    const auto even = 2 * k < left ? Simd::load(keys + 2 * k * kKvBlockTokens) : zero;
    const auto odd = 2 * k + 1 < left ? Simd::load(keys + (2 * k + 1) * kKvBlockTokens) : zero;
    _mm512_store_si512(tile + k * kTileRowBytes, paired(even, odd));
  }
}

/// Scores of kBlocks blocks from `block` on, to column `column` of the chunk's.
template <int kBlocks, typename Simd, int kRowTiles, std::size_t kHeadMax>
void score_blocks_by_tiles(const PagedHead<Float16>& head, std::size_t block, std::size_t column,
                           TileStrip<Simd, kRowTiles, kHeadMax>& strip) {
  tile_zero<0>();
  if constexpr (kBlocks == 2) tile_zero<1>();
  if constexpr (kRowTiles == 2) tile_zero<2>();
  if constexpr (kRowTiles == 2 && kBlocks == 2) tile_zero<3>();
  for (std::size_t c = 0; c < head.head_size; c += kGroup) {
    const auto& queries = strip.queries[c / kGroup];
    const std::size_t left = head.head_size - c;
    put_keys<Simd>(head.keys(block) + c * kKvBlockTokens, left, strip.tiles[0]);
    tile_load<4>(queries, kTileRowBytes);
    tile_load<6>(strip.tiles[0], kTileRowBytes);
    tile_add_bf16<0, 4, 6>();
    if constexpr (kRowTiles == 2) {
      tile_load<5>(queries[kTileRows], kTileRowBytes);
      tile_add_bf16<2, 5, 6>();
    }
    if constexpr (kBlocks == 2) {
      put_keys<Simd>(head.keys(block + 1) + c * kKvBlockTokens, left, strip.tiles[1]);
      tile_load<7>(strip.tiles[1], kTileRowBytes);
      tile_add_bf16<1, 4, 7>();
      if constexpr (kRowTiles == 2) tile_add_bf16<3, 5, 7>();
    }
  }
  constexpr std::size_t kStride = kChunk * sizeof(float);
  tile_store<0>(strip.scores[0] + column, kStride);
  if constexpr (kBlocks == 2) tile_store<1>(strip.scores[0] + column + kKvBlockTokens, kStride);
  if constexpr (kRowTiles == 2) {
    tile_store<2>(strip.scores[kTileRows] + column, kStride);
    if constexpr (kBlocks == 2) {
      tile_store<3>(strip.scores[kTileRows] + column + kKvBlockTokens, kStride);
    }
  }
}

/// 32 positions from `at` on, 16 columns from `column` on: only what the strip sees.
template <typename Strip>
[[gnu::always_inline]] inline void put_values(const PagedHead<Float16>& head, std::size_t at,
                                              std::size_t column, const Strip& strip,
                                              std::byte* tile) {
  using Simd = typename Strip::Simd;
  if (at >= strip.begin && at + kGroup <= strip.end) {
    for (std::size_t half = 0; half < 2; ++half) {
      const Float16* values = head.values(at / kKvBlockTokens + half) + column;
#pragma GCC unroll 8
      for (std::size_t k = 0; k < kKvBlockTokens / 2; ++k) {
        _mm512_store_si512(tile + (half * kKvBlockTokens / 2 + k) * kTileRowBytes,
                           paired(Simd::load(values), Simd::load(values + head.head_size)));
        values += 2 * head.head_size;
      }
    }
    return;
  }
  const auto load = [&](std::size_t p) {
    if (p < strip.begin || p >= strip.end) return Simd::broadcast(0);
    return Simd::load(head.values(p / kKvBlockTokens) + p % kKvBlockTokens * head.head_size +
                      column);
  };
  for (std::size_t k = 0; k < kTileRows; ++k) {
    _mm512_store_si512(tile + k * kTileRowBytes, paired(load(at + 2 * k), load(at + 2 * k + 1)));
  }
}

/// sums += weights values for kColumns tiles of columns from `column` on.
template <int kColumns, typename Simd, int kRowTiles, std::size_t kHeadMax>
void combine_by_tiles(const PagedHead<Float16>& head, std::size_t chunk, std::size_t group_count,
                      std::size_t column, TileStrip<Simd, kRowTiles, kHeadMax>& strip) {
  constexpr std::size_t kStride = kHeadMax * sizeof(float);
  float* first = strip.sums[0] + column;
  tile_load<0>(first, kStride);
  if constexpr (kColumns == 2) tile_load<1>(first + 16, kStride);
  if constexpr (kRowTiles == 2) {
    tile_load<2>(strip.sums[kTileRows] + column, kStride);
    if constexpr (kColumns == 2) tile_load<3>(strip.sums[kTileRows] + column + 16, kStride);
  }
  constexpr std::size_t kWeightStride = kChunk * sizeof(std::uint16_t);
  for (std::size_t g = 0; g < group_count; ++g) {
    const std::size_t at = chunk + g * kGroup;
    put_values(head, at, column, strip, strip.tiles[0]);
    tile_load<4>(strip.weights[0] + g * kGroup, kWeightStride);
    tile_load<6>(strip.tiles[0], kTileRowBytes);
    tile_add_bf16<0, 4, 6>();
    if constexpr (kRowTiles == 2) {
      tile_load<5>(strip.weights[kTileRows] + g * kGroup, kWeightStride);
      tile_add_bf16<2, 5, 6>();
    }
    if constexpr (kColumns == 2) {
      put_values(head, at, column + 16, strip, strip.tiles[1]);
      tile_load<7>(strip.tiles[1], kTileRowBytes);
      tile_add_bf16<1, 4, 7>();
      if constexpr (kRowTiles == 2) tile_add_bf16<3, 5, 7>();
    }
  }
  tile_store<0>(first, kStride);
  if constexpr (kColumns == 2) tile_store<1>(first + 16, kStride);
  if constexpr (kRowTiles == 2) {
    tile_store<2>(strip.sums[kTileRows] + column, kStride);
    if constexpr (kColumns == 2) tile_store<3>(strip.sums[kTileRows] + column + 16, kStride);
  }
}

template <typename Simd, int kRowTiles, std::size_t kHeadMax>
void attend_chunk(const PagedHead<Float16>& head, std::span<const AttentionRow> rows,
                  const AttentionExtras& extras, std::size_t chunk,
                  TileStrip<Simd, kRowTiles, kHeadMax>& strip) {
  const std::size_t end = std::min(chunk + kChunk, strip.end);
  const std::size_t first = std::max(chunk, strip.begin) / kKvBlockTokens;
  const std::size_t last = (end + kKvBlockTokens - 1) / kKvBlockTokens;
  for_each_strip<2>(last - first, [&]<std::size_t kBlocks>(std::size_t block) {
    score_blocks_by_tiles<int{kBlocks}>(head, first + block,
                                        (first + block) * kKvBlockTokens - chunk, strip);
  });
  weigh_chunk(strip, rows, extras, chunk, end, head.head_size);
  const std::size_t group_count = (end - chunk + kGroup - 1) / kGroup;
  for_each_strip<2>((head.head_size + 15) / 16, [&]<std::size_t kColumns>(std::size_t column) {
    combine_by_tiles<int{kColumns}>(head, chunk, group_count, column * 16, strip);
  });
}

}  // namespace muster::engine
