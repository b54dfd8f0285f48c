#include "engine/ops/pooling.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::engine {
namespace {

std::vector<float> pooled(Pooling pooling) {
  const std::vector<float> hidden{1, 6, 2, -4, 6, 1};  // three tokens of two values
  std::vector<float> row(2);
  pool_tokens(pooling, hidden, row);
  return row;
}

TEST(PoolTokens, TakesTheFirstTheLastTheMeanOrTheLargest) {
  EXPECT_EQ(pooled(Pooling::Cls), (std::vector<float>{1, 6}));
  EXPECT_EQ(pooled(Pooling::Last), (std::vector<float>{6, 1}));
  EXPECT_EQ(pooled(Pooling::Mean), (std::vector<float>{3, 1}));  // 9 / 3 and 3 / 3
  EXPECT_EQ(pooled(Pooling::Max), (std::vector<float>{6, 6}));
}

TEST(NormalizeRow, ScalesToLengthOneAndLeavesZeroAlone) {
  std::vector<float> row{3, 4};
  normalize_row(row);
  EXPECT_EQ(row, (std::vector<float>{0.6F, 0.8F}));
  std::vector<float> zero{0, 0};
  normalize_row(zero);
  EXPECT_EQ(zero, (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace muster::engine
