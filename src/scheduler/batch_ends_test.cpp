#include "scheduler/batch_ends.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster {
namespace {

using std::chrono::milliseconds;
using Ends = std::vector<Duration>;

constexpr Duration kMost = milliseconds(128);  // a full batch: 96 ms, at least 48

TEST(BatchEnds, AFullBatchIsThreeQuartersOfTheLongest) {
  EXPECT_EQ(time_among(kMost, Ends{}), milliseconds(96));
}

TEST(BatchEnds, ABatchEndsInTheMiddleBetweenTwoOfTheOther) {
  EXPECT_EQ(time_among(kMost, Ends{milliseconds(48)}), milliseconds(96));
  EXPECT_EQ(time_among(kMost, Ends{milliseconds(30)}), milliseconds(78));
  EXPECT_EQ(time_among(kMost, Ends{milliseconds(0)}), milliseconds(48));
  EXPECT_EQ(time_among(kMost, Ends{milliseconds(96)}), milliseconds(48));
}

// 24 ms after the other's end, or as long before it: neither can be the middle.
TEST(BatchEnds, OfTwoThatAreAsGoodTheLongerOneIsTaken) {
  EXPECT_EQ(time_among(kMost, Ends{milliseconds(72)}), milliseconds(96));
}

TEST(BatchEnds, AnEndThatIsLateCountsAsOfTheNextBatch) {
  EXPECT_EQ(time_among(kMost, Ends{milliseconds(-66)}), milliseconds(78));
  EXPECT_EQ(time_among(kMost, Ends{milliseconds(30 - 10 * 96)}), milliseconds(78));
}

TEST(BatchEnds, WithManyDevicesItIsTheWidestGap) {
  EXPECT_EQ(time_among(kMost, Ends{milliseconds(0), milliseconds(12), milliseconds(24),
                                   milliseconds(36), milliseconds(84)}),
            milliseconds(60));
}

// Devices that all begin at once have soon spread their ends, and keep them so: no gap is under
// half of an even one or over twice that.
TEST(BatchEnds, DevicesThatBeganTogetherEndOneAfterTheOther) {
  for (const std::size_t count : {2U, 3U, 8U}) {
    std::vector<Duration> ends(count, Duration{0});
    for (std::size_t turn = 0; turn < 20 * count; ++turn) {
      const auto next = std::min_element(ends.begin(), ends.end());
      const Duration now = *next;
      Ends others;
      for (auto end = ends.begin(); end != ends.end(); ++end) {
        if (end != next) others.push_back(*end - now);
      }
      *next = now + time_among(kMost, others);
    }
    auto sorted = ends;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 1; i < count; ++i) {
      const auto gap = sorted[i] - sorted[i - 1];
      EXPECT_GE(gap, milliseconds(96) / count / 2) << count << " devices, " << i;
      EXPECT_LE(gap, milliseconds(96) * 2 / count) << count << " devices, " << i;
    }
  }
}

TEST(BatchEnds, TimesOfNoLengthAreNoFault) {
  EXPECT_EQ(time_among(Duration{1}, Ends{Duration{0}, Duration{7}}), Duration{1});
}

}  // namespace
}  // namespace muster
