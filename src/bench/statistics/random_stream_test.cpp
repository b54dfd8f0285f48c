#include "bench/statistics/random_stream.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster {
namespace {

TEST(RandomStream, TheBitsAreTheOnesOfTheStandard) {
  // The 10,000th number of mt19937_64 with its own seed. Source: ISO C++20, [rand.predef].
  constexpr std::uint64_t kTenThousandth = 9981545732273789042ULL;
  RandomStream random(5489);
  double last = 0;
  for (int i = 0; i < 10'000; ++i) last = random.uniform();
  EXPECT_EQ(last, (static_cast<double>(kTenThousandth >> 11) + 0.5) * 0x1p-53);
}

TEST(RandomStream, HasTheMomentsOfItsLaws) {
  RandomStream random(1);
  constexpr int kCount = 100'000;
  double exponential = 0;
  double normal = 0;
  double squares = 0;
  for (int i = 0; i < kCount; ++i) {
    exponential += random.exponential() / kCount;
    const double value = random.normal();
    normal += value / kCount;
    squares += value * value / kCount;
  }
  // Four standard errors.
  const double error = 4 / std::sqrt(kCount);
  EXPECT_NEAR(exponential, 1, error);
  EXPECT_NEAR(normal, 0, error);
  EXPECT_NEAR(squares, 1, error * std::sqrt(2));
}

TEST(RandomStream, CountsStayBelowTheirLimit) {
  RandomStream random(3);
  std::uint64_t most = 0;
  for (int i = 0; i < 1000; ++i) most = std::max(most, random.below(7));
  EXPECT_EQ(most, 6U);
  EXPECT_EQ(random.below(1), 0U);
}

}  // namespace
}  // namespace muster
