#include "bench/result/peak_search.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

std::vector<double> search(PeakSearch& search, double capacity) {
  std::vector<double> tried;
  while (const auto rate = search.next_rate()) {
    tried.push_back(*rate);
    search.report(*rate <= capacity);
  }
  return tried;
}

TEST(PeakSearch, DoublesAndThenHalvesTheGap) {
  PeakSearch peak({.first_rate = 10});
  const auto tried = search(peak, 100);
  EXPECT_EQ((std::vector(tried.begin(), tried.begin() + 5)),
            (std::vector<double>{10, 20, 40, 80, 160}));
  ASSERT_TRUE(peak.peak());
  EXPECT_LE(*peak.peak(), 100);
  EXPECT_GT(*peak.missed(), 100);
  EXPECT_LE(*peak.missed(), *peak.peak() * 1.05);
  EXPECT_LE(tried.size(), 10U);
}

TEST(PeakSearch, GoesDownWhereTheFirstRateIsTooHigh) {
  PeakSearch peak({.first_rate = 10});
  search(peak, 0.3);
  ASSERT_TRUE(peak.peak());
  EXPECT_LE(*peak.peak(), 0.3);
  EXPECT_GT(*peak.peak() * 1.05, 0.3);
}

TEST(PeakSearch, EndsAtItsLimits) {
  PeakSearch none({.first_rate = 1, .rate_least = 0.1});
  search(none, 0);
  EXPECT_FALSE(none.peak());
  EXPECT_EQ(none.missed(), 0.1);
  PeakSearch all({.first_rate = 1, .rate_most = 100});
  search(all, 1e9);
  EXPECT_EQ(all.peak(), 100);
  EXPECT_FALSE(all.missed());
}

}  // namespace
}  // namespace muster
