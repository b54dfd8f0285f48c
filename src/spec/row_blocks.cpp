// How many rows of a product are computed at once. oneDNN picks kernels by shape, and different
// kernels may sum in different orders, so only row counts that the self-test at load found equal
// are used, and a batch is covered by those.

#include "spec/row_blocks.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace muster {
namespace {

// What a product call is charged beside its rows, in rows: it reads all weights once more. Measured
// with batches of 8 to 16 texts it costs 6 to 17; the step between two counts is 32 at most below
// 256, and nearly that much is charged so that a longer batch never has a smaller largest block: a
// plan's memory must not fall as a batch grows.
constexpr std::uint32_t kCallRows = 28;

// The fewest rows of a block that another lane is given: with 48 a core's product is within 5 % of
// its best (016-bf16-product.md), and it reads its weights at a few gigabytes a second.
constexpr std::uint32_t kSharedRowsLeast = 48;
constexpr std::uint32_t kStripRows = 6;  // a strip of our products

std::uint32_t quotient_up(std::uint32_t value, std::uint32_t divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace

std::uint64_t gpu_rows_computed(std::uint64_t row_count) {
  const auto fits = std::find_if(std::rbegin(kGpuRowCounts), std::rend(kGpuRowCounts),
                                 [&](std::uint32_t count) { return count >= row_count; });
  return fits != std::rend(kGpuRowCounts) ? *fits : row_count;
}

std::vector<RowBlock> cover_rows(std::uint32_t row_count, std::span<const std::uint32_t> allowed) {
  std::vector<RowBlock> blocks;
  std::uint32_t begin = 0;
  while (row_count - begin >= allowed.front()) {
    blocks.push_back({begin, allowed.front(), allowed.front()});
    begin += allowed.front();
  }
  // The cheapest cover of a tail of r rows: any block first, then the cheapest cover of what is
  // left.
  const std::uint32_t tail = row_count - begin;
  std::vector<std::uint32_t> cost(tail + 1, std::numeric_limits<std::uint32_t>::max());
  std::vector<std::uint32_t> choice(tail + 1, 0);
  cost[0] = 0;
  for (std::uint32_t rows = 1; rows <= tail; ++rows) {
    for (const auto count : allowed) {
      const auto total = cost[rows - std::min(rows, count)] + count + kCallRows;
      if (total < cost[rows]) {
        cost[rows] = total;
        choice[rows] = count;
      }
    }
  }
  for (std::uint32_t left = tail; left > 0;) {
    const auto used = std::min(left, choice[left]);
    blocks.push_back({begin, choice[left], used});
    begin += used;
    left -= used;
  }
  return blocks;
}

std::vector<RowBlock> cut_rows(std::uint32_t row_count, std::uint32_t most) {
  std::vector<RowBlock> blocks;
  for (std::uint32_t begin = 0; begin < row_count; begin += most) {
    const auto count = std::min(most, row_count - begin);
    blocks.push_back({begin, count, count});
  }
  return blocks;
}

// Whole rounds of a block for each lane.
std::uint32_t shared_block_rows(std::uint32_t row_count, std::uint32_t lane_count) {
  if (lane_count < 2) return kProductRowsMost;
  const auto rounds = quotient_up(row_count, kProductRowsMost * lane_count);
  const auto rows = quotient_up(row_count, std::max(1U, rounds) * lane_count);
  if (rows < kSharedRowsLeast) return kProductRowsMost;
  return quotient_up(rows, kStripRows) * kStripRows;
}

std::span<const std::uint32_t> shared_row_counts(std::uint32_t row_count,
                                                 std::span<const std::uint32_t> allowed,
                                                 std::uint32_t lane_count) {
  if (lane_count < 2) return allowed;
  const auto most = std::max(kSharedRowsLeast, quotient_up(row_count, lane_count));
  while (allowed.size() > 1 && allowed.front() > most) allowed = allowed.subspan(1);
  return allowed;
}

std::uint32_t covered_row_count(std::span<const RowBlock> blocks) {
  return blocks.empty() ? 0 : blocks.back().begin + blocks.back().count;
}

}  // namespace muster
