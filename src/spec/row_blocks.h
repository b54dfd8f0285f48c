#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster {

/// How the engine cuts a batch into rows of products on a CPU: what is computed, and so what is
/// alive at once.

/// The row counts that oneDNN's products may be computed in, largest first. 512 rows of the widest
/// layer of a small encoder fit the second-level cache; 16 is the smallest that keeps half of the
/// speed. Single texts are mostly 16 to 32 tokens long, batches of them 150 to 250: there the steps
/// are small, so that few rows are padding. Each costs half a megabyte for each of the four
/// products (oneDNN's kernels for that shape), which is why there are not more. Measured against
/// powers of two alone, all-MiniLM-L6-v2 in bf16, texts of 18 tokens: batches of 1, 8, 12 and 32
/// texts make 15, 5, 3 and 0 per cent more texts a second (six rounds, side by side).
inline constexpr std::uint32_t kRowCounts[] = {512, 256, 224, 192, 160, 128, 96,
                                               64,  48,  32,  24,  20,  16};

/// The same on a GPU, where an encoder's products take one of these counts for a whole pass: one
/// and a half apart, so that few rows are padding. The largest is what a pass may have. Measured on
/// an H100, all-MiniLM-L6-v2's shape in bf16: 4,096 rows make 6.4 million tokens a second, 16,384
/// 7.3 million, 65,536 8.0 million (2026-11-26, kernels alone).
inline constexpr std::uint32_t kGpuRowCounts[] = {16384, 12288, 8192, 6144, 4096, 3072,
                                                  2048,  1536,  1024, 768,  512,  384,
                                                  256,   192,   128,  96,   64,   32};

/// The smallest of them that holds so many rows, or as many where none does.
std::uint64_t gpu_rows_computed(std::uint64_t row_count);

/// Lanes of a GPU's worker, each with a stream and a pass of its own: while one waits for its rows
/// and sends them, the device computes for the other.
inline constexpr std::size_t kGpuLanes = 2;

/// The most rows that our own product, which takes any number, computes at once: as many strips of
/// six as let the widest layer of a small encoder stay in the second-level cache.
inline constexpr std::uint32_t kProductRowsMost = 240;

/// How many tokens a lane computes at once, give or take a text. Enough rows that the padded tail
/// is small, little enough memory for a lane: 12 MB for a hidden size of 384. 512 and 2,048 are as
/// quick within the noise (benchmarks/engine/encode_bench).
inline constexpr std::size_t kTokensPerPass = 1024;

/// A run of rows that one product call computes: `count` is an allowed row count, of which the last
/// block may use fewer (`used`); the rest is padding.
struct RowBlock {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
  std::uint32_t used = 0;
};

/// Covers `row_count` rows with allowed counts (descending): whole blocks of the largest, then the
/// tail with the fewest computed rows, where a call is charged like 28 rows.
std::vector<RowBlock> cover_rows(std::uint32_t row_count, std::span<const std::uint32_t> allowed);

/// Cuts `row_count` rows into blocks of `most`; the last one takes what is left. No padding.
std::vector<RowBlock> cut_rows(std::uint32_t row_count, std::uint32_t most);

/// How many rows of `row_count` a block of our own product has, for `cut_rows`: kProductRowsMost,
/// and where several lanes compute them so many that each lane gets as many blocks as the others. A
/// block of few rows reads every weight for little; rows that would be cut into such stay together,
/// and their products are shared out by outputs.
std::uint32_t shared_block_rows(std::uint32_t row_count, std::uint32_t lane_count);

/// Those of the allowed counts (descending) of which `row_count` rows have a block for each of
/// several lanes, or the smallest; with one lane all.
std::span<const std::uint32_t> shared_row_counts(std::uint32_t row_count,
                                                 std::span<const std::uint32_t> allowed,
                                                 std::uint32_t lane_count);

/// Rows of the last block's end: what buffers must hold.
std::uint32_t covered_row_count(std::span<const RowBlock> blocks);

}  // namespace muster
