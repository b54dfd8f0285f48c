#include "engine/ops/relative_positions.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::engine {
namespace {

// With 32 buckets: 16 a side, 8 of them exact, 8 that grow by the logarithm up to distance 128.
TEST(RelativePositionBucket, NearPlacesHaveTheirOwnAndFarOnesShare) {
  EXPECT_EQ(relative_position_bucket(0, 32), 0U);
  EXPECT_EQ(relative_position_bucket(-7, 32), 7U);    // the key stands before the query
  EXPECT_EQ(relative_position_bucket(7, 32), 23U);    // after it: 16 more
  EXPECT_EQ(relative_position_bucket(-8, 32), 8U);    // 8 + 8 ln(8/8) / ln(128/8)
  EXPECT_EQ(relative_position_bucket(-16, 32), 10U);  // 8 + 8 ln 2 / ln 16 = 10
  EXPECT_EQ(relative_position_bucket(-1000, 32), 15U);
  EXPECT_EQ(relative_position_bucket(1000, 32), 31U);
}

TEST(RelativeBiasByOffset, OffsetZeroStandsInTheMiddleOfAHeadsRow) {
  // 4 buckets (2 a side, 1 exact), 2 heads; the bias of bucket b for head h is 10 b + h.
  const std::vector<float> bias{0, 1, 10, 11, 20, 21, 30, 31};
  EXPECT_EQ(relative_bias_by_offset(bias, 4, 2, 2),
            (std::vector<float>{10, 0, 30, 11, 1, 31}));  // offsets -1, 0, 1
}

}  // namespace
}  // namespace muster::engine
