#include "engine/ops/row_counts.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::engine {
namespace {

std::string describe(const std::vector<RowBlock>& blocks) {
  std::string text;
  for (const auto& block : blocks) {
    text += std::to_string(block.begin) + ":" + std::to_string(block.used) + "/" +
            std::to_string(block.count) + " ";
  }
  return text;
}

TEST(CoverRows, WholeBlocksComeFirstAndTheTailIsPaddedToAnAllowedCount) {
  EXPECT_EQ(describe(cover_rows(0, kRowCounts)), "");
  EXPECT_EQ(describe(cover_rows(1, kRowCounts)), "0:1/16 ");
  EXPECT_EQ(describe(cover_rows(16, kRowCounts)), "0:16/16 ");
  EXPECT_EQ(describe(cover_rows(1024, kRowCounts)), "0:512/512 512:512/512 ");
  // 520 = 512 and 8 more, which 16 holds.
  EXPECT_EQ(describe(cover_rows(520, kRowCounts)), "0:512/512 512:8/16 ");
  // 120: 64 + 32 + 16 + 16 would be four calls; 128 wastes eight rows and is one.
  EXPECT_EQ(describe(cover_rows(120, kRowCounts)), "0:120/128 ");
}

TEST(SharedRows, BlocksAreAsManyForEachLane) {
  EXPECT_EQ(shared_block_rows(4000, 1), 240U);
  // 4000 rows are 17 blocks of 240, so 9 rounds of 2: 4000 / 18 = 223 rows, 38 strips of 6.
  EXPECT_EQ(shared_block_rows(4000, 2), 228U);
  EXPECT_EQ(shared_block_rows(480, 2), 240U);
  EXPECT_EQ(shared_block_rows(481, 2), 126U);  // 4 blocks of 121
  EXPECT_EQ(shared_block_rows(96, 2), 48U);
  // Of 47 rows each: they stay together.
  EXPECT_EQ(shared_block_rows(94, 2), 240U);
  EXPECT_EQ(shared_block_rows(16, 2), 240U);
}

TEST(SharedRows, AllowedCountsLeaveABlockForEachLane) {
  const std::vector<std::uint32_t> allowed{512, 256, 64, 16};
  const auto first = [&](std::uint32_t rows, std::uint32_t lanes) {
    return shared_row_counts(rows, allowed, lanes).front();
  };
  EXPECT_EQ(first(512, 1), 512U);
  EXPECT_EQ(first(1024, 2), 512U);
  EXPECT_EQ(first(1023, 2), 512U);
  EXPECT_EQ(first(1022, 2), 256U);  // 511 rows each
  EXPECT_EQ(first(120, 2), 16U);    // 60 each
  const std::vector<std::uint32_t> only{512};
  EXPECT_EQ(shared_row_counts(16, only, 2).front(), 512U);
}

TEST(CutRows, TheLastBlockTakesWhatIsLeft) {
  EXPECT_EQ(describe(cut_rows(0, 240)), "");
  EXPECT_EQ(describe(cut_rows(18, 240)), "0:18/18 ");
  EXPECT_EQ(describe(cut_rows(240, 240)), "0:240/240 ");
  EXPECT_EQ(describe(cut_rows(500, 240)), "0:240/240 240:240/240 480:20/20 ");
}

TEST(CoverRows, OneAllowedCountPadsEverythingToIt) {
  const std::vector<std::uint32_t> only{512};
  const auto blocks = cover_rows(600, only);
  EXPECT_EQ(describe(blocks), "0:512/512 512:88/512 ");
  EXPECT_EQ(covered_row_count(blocks), 1024U);
}

TEST(CoverRows, EveryRowIsUsedOnceForEveryCount) {
  for (std::uint32_t rows = 0; rows <= 1100; ++rows) {
    std::uint32_t reached = 0;
    for (const auto& block : cover_rows(rows, kRowCounts)) {
      ASSERT_EQ(block.begin, reached);
      ASSERT_LE(block.used, block.count);
      reached += block.used;
    }
    ASSERT_EQ(reached, rows);
  }
}

TEST(AgreeingRowCounts, ACountThatGivesOtherBitsIsDropped) {
  // A product that doubles, but adds an error below 64 rows: those counts must go.
  const RowProduct product{
      4, [](const at::Tensor& x) { return x.size(0) < 64 ? x.mul(2.0000002) : x.mul(2); }};
  const auto allowed =
      agreeing_row_counts({&product, 1}, kRowCounts, at::kFloat, at::Device(at::kCPU));
  EXPECT_EQ(allowed, (std::vector<std::uint32_t>{512, 256, 224, 192, 160, 128, 96, 64}));
}

TEST(AgreeingRowCounts, AProductWhoseRowsDependOnTheirPlaceIsRefused) {
  const RowProduct product{4, [](const at::Tensor& x) {
                             auto y = x.clone();
                             y.select(0, 3).mul_(1.5);
                             return y;
                           }};
  EXPECT_ANY_THROW(
      agreeing_row_counts({&product, 1}, kRowCounts, at::kFloat, at::Device(at::kCPU)));
}

}  // namespace
}  // namespace muster::engine
