#include "report/thinning.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster {
namespace {

// Columns of 5: what lies at the right end belongs to the last one.
TEST(ColumnRanges, HaveLeastMedianAndMost) {
  const std::vector<PlotPoint> points{{0, 5}, {1, 7}, {5, 1}, {10, 9}, {12, 4}};
  const auto ranges = column_ranges(points, 0, 10, 2);
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].x, 2.5);
  EXPECT_EQ(ranges[0].low, 5);
  EXPECT_EQ(ranges[0].median, 5) << "the lower one of two";
  EXPECT_EQ(ranges[0].high, 7);
  EXPECT_EQ(ranges[0].count, 2U);
  EXPECT_EQ(ranges[1].x, 7.5);
  EXPECT_EQ(ranges[1].low, 1);
  EXPECT_EQ(ranges[1].median, 4);
  EXPECT_EQ(ranges[1].high, 9);
}

TEST(ColumnRanges, LeaveEmptyColumnsOut) {
  const std::vector<PlotPoint> points{{9, 1}};
  const auto ranges = column_ranges(points, 0, 10, 10);
  ASSERT_EQ(ranges.size(), 1U);
  EXPECT_EQ(ranges[0].x, 9.5);
  EXPECT_TRUE(column_ranges({}, 0, 10, 10).empty());
  EXPECT_EQ(column_ranges(points, 3, 3, 10).size(), 1U) << "an axis without width";
}

TEST(ColumnRanges, LoseNoOutlierAmongAMillion) {
  constexpr std::size_t kCount = 1'000'000;
  std::vector<PlotPoint> points(kCount);
  for (std::size_t i = 0; i < kCount; ++i) points[i] = {static_cast<double>(i), 1};
  points[123'456].y = 1000;
  points[654'321].y = 0.001;
  const auto ranges = column_ranges(points, 0, kCount, 300);
  EXPECT_EQ(ranges.size(), 300U);
  EXPECT_EQ(std::ranges::max(ranges, {}, &ColumnRange::high).high, 1000);
  EXPECT_EQ(std::ranges::min(ranges, {}, &ColumnRange::low).low, 0.001);
  // Both stand where they were: in columns of 3,333 and a third.
  EXPECT_EQ(ranges[37].high, 1000);
  EXPECT_EQ(ranges[196].low, 0.001);
}

}  // namespace
}  // namespace muster
