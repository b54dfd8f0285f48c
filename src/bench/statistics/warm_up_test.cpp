#include "bench/statistics/warm_up.h"

#include <gtest/gtest.h>

#include <vector>

#include "bench/statistics/random_stream.h"

namespace muster {
namespace {

// `count` exponential values, times `factor` at each place.
template <typename Factor>
std::vector<double> series(std::size_t count, std::uint64_t seed, Factor factor) {
  RandomStream random(seed);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(random.exponential() * factor(i));
  return values;
}

TEST(FindSteadyPart, CutsARampAndLittleMore) {
  constexpr std::size_t kCount = 24'000;
  constexpr std::size_t kRamp = 4'000;
  int whole = 0;
  constexpr int kRuns = 40;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    const auto part = find_steady_part(series(kCount, run, [](std::size_t i) {
      return i < kRamp ? 1 + 2 * (1 - static_cast<double>(i) / kRamp) : 1.0;
    }));
    whole += part.begin >= kRamp;
    EXPECT_LE(part.begin, kCount / 2) << run;
    EXPECT_TRUE(part.is_steady.has_value());
  }
  EXPECT_GE(whole, kRuns * 95 / 100);
}

TEST(FindSteadyPart, LeavesASteadySeriesAlone) {
  double lost = 0;
  constexpr int kRuns = 40;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    const auto part = find_steady_part(series(10'000, 1000 + run, [](std::size_t) { return 1.0; }));
    lost += static_cast<double>(part.begin) / 10'000 / kRuns;
    EXPECT_NE(part.is_steady, false) << run;
  }
  EXPECT_LE(lost, 0.05);
  // Those that a double does not hold exactly leave something behind when they are added up.
  for (const double value : {3.0, 0.05, 0.1, 0.3, 5.3}) {
    const std::vector<double> constant(5'000, value);
    EXPECT_EQ(find_steady_part(constant).begin, 0U) << value;
    EXPECT_EQ(find_steady_part(constant).is_steady, true) << value;
  }
}

TEST(FindSteadyPart, AStallLateInARunIsNotItsWarmUp) {
  const auto part = find_steady_part(
      series(10'000, 5, [](std::size_t i) { return i >= 6'000 && i < 6'200 ? 500.0 : 1.0; }));
  EXPECT_LE(part.begin, 1'000U);
  EXPECT_EQ(part.is_steady, true);
}

TEST(FindSteadyPart, SeesThatASeriesGoesOnRising) {
  const auto part = find_steady_part(
      series(10'000, 6, [](std::size_t i) { return 1 + static_cast<double>(i) / 5'000; }));
  EXPECT_EQ(part.is_steady, false);
  EXPECT_GT(part.drift, 0.05);
}

TEST(FindSteadyPart, FewSamplesAreKeptAndNotJudged) {
  const auto part = find_steady_part(series(99, 7, [](std::size_t) { return 1.0; }));
  EXPECT_EQ(part.begin, 0U);
  EXPECT_FALSE(part.is_steady);
  EXPECT_FALSE(find_steady_part({}).is_steady);
}

}  // namespace
}  // namespace muster
