#include "bench/result/peak_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster {
namespace {

std::vector<double> search(PeakSearch& search, double capacity) {
  std::vector<double> tried;
  while (const auto rate = search.next_rate()) {
    tried.push_back(*rate);
    search.report(*rate <= capacity ? RateOutcome::Met : RateOutcome::Missed);
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

// 368 and 30 % are 478.4, at ten a second.
TEST(SecondsForSamples, AreMoreThanJustEnough) {
  EXPECT_NEAR(seconds_for_samples(368, 10), 47.84, 1e-9);
}

// 36.8/s and more are as many requests as are needed.
TEST(PeakSearch, GoesUpFromWhatIsNotKnown) {
  const auto outcome = [](double rate, double capacity) {
    if (rate > capacity) return RateOutcome::Missed;
    return rate < 36.8 ? RateOutcome::Unknown : RateOutcome::Met;
  };
  PeakSearch peak({.first_rate = 10});
  std::vector<double> tried;
  while (const auto rate = peak.next_rate()) {
    tried.push_back(*rate);
    peak.report(outcome(*rate, 100));
  }
  EXPECT_EQ((std::vector(tried.begin(), tried.begin() + 5)),
            (std::vector<double>{10, 20, 40, 80, 160}));
  EXPECT_GT(peak.peak(), 95);
  EXPECT_EQ(peak.unknown(), 20);
  // What it can do lies where nothing can be known: it does not go below that.
  PeakSearch none({.first_rate = 10});
  tried.clear();
  while (const auto rate = none.next_rate()) {
    tried.push_back(*rate);
    none.report(outcome(*rate, 30));
  }
  EXPECT_FALSE(none.peak());
  EXPECT_LE(*none.missed(), *none.unknown() * 1.05);
  EXPECT_EQ(*std::min_element(tried.begin(), tried.end()), 10);
  EXPECT_LE(tried.size(), 9U);
}

}  // namespace
}  // namespace muster
