#include "bench/load/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace muster {
namespace {

std::vector<double> first(const ArrivalPlan& plan, std::size_t count, std::uint64_t seed = 1) {
  ArrivalSchedule schedule(plan, seed);
  std::vector<double> times;
  while (times.size() < count) {
    const auto at = schedule.next();
    if (!at) break;
    times.push_back(seconds(*at));
  }
  return times;
}

TEST(ArrivalSchedule, ConstantGapsAreAllAlike) {
  EXPECT_EQ(first({.law = ArrivalLaw::Constant, .rate_begin = 4}, 3),
            (std::vector<double>{0, 0.25, 0.5}));
}

// Rates 1 to 3 in ten seconds: t + t^2 / 10 requests by t, 20 in all; the 12th where it is 11.
// Behind the ramp the last rate goes on.
TEST(ArrivalSchedule, ARampFollowsTheIntegralOfItsRate) {
  const auto times =
      first({.law = ArrivalLaw::Constant, .rate_begin = 1, .rate_end = 3, .ramp_seconds = 10}, 27);
  ASSERT_EQ(times.size(), 27U);
  EXPECT_EQ(times.front(), 0);
  EXPECT_NEAR(times[11], (std::sqrt(5.4) - 1) / 0.2, 1e-8);
  EXPECT_NEAR(times[20], 10, 1e-8);
  EXPECT_NEAR(times[26], 12, 1e-8);
  // And down again.
  const auto falling =
      first({.law = ArrivalLaw::Constant, .rate_begin = 3, .rate_end = 1, .ramp_seconds = 10}, 23);
  ASSERT_EQ(falling.size(), 23U);
  EXPECT_NEAR(falling[9], 10 - times[11], 1e-8);
  EXPECT_NEAR(falling[22], 12, 1e-8);
}

// The draws of a Poisson process do not stop where the ramp was expected to have had them all.
TEST(ArrivalSchedule, ARampHasAsManyArrivalsAsAreWanted) {
  const ArrivalPlan plan{.rate_begin = 10, .rate_end = 200, .ramp_seconds = 1};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto times = first(plan, 105, seed);
    EXPECT_EQ(times.size(), 105U) << "seed " << seed;
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end())) << "seed " << seed;
  }
}

TEST(ArrivalSchedule, PoissonHasTheRateAndTheSpreadOfItsLaw) {
  const auto times = first({.rate_begin = 50}, 50'000);
  EXPECT_NEAR(times.back(), 1000, 4 * std::sqrt(50'000) / 50);
  int short_gaps = 0;
  for (std::size_t i = 1; i < times.size(); ++i) short_gaps += times[i] - times[i - 1] < 0.02;
  EXPECT_NEAR(short_gaps / 50'000.0, 1 - std::exp(-1), 0.01);
}

TEST(ArrivalSchedule, TheSeedFixesTheTimes) {
  const ArrivalPlan plan{.rate_begin = 50};
  EXPECT_EQ(first(plan, 100, 3), first(plan, 100, 3));
  EXPECT_NE(first(plan, 100, 3), first(plan, 100, 4));
}

// 1e300 seconds are more than a Duration holds; they must not become a time that has passed.
TEST(ArrivalSchedule, ATimeBeyondAllRunsIsLateAndNotEarly) {
  EXPECT_EQ(first({.law = ArrivalLaw::Constant, .rate_begin = 1e-300}, 2),
            (std::vector<double>{0, 1e9}));
  EXPECT_EQ(first({.law = ArrivalLaw::Trace, .trace = {1e300}}, 1), (std::vector<double>{1e9}));
}

TEST(ArrivalSchedule, ATraceIsPlayedToItsEnd) {
  EXPECT_EQ(first({.law = ArrivalLaw::Trace, .trace = {0.5, 0.5, 2}}, 10),
            (std::vector<double>{0.5, 0.5, 2}));
}

TEST(ParseArrivalTrace, ReadsALineEach) {
  const auto times = parse_arrival_trace("# seconds\n0\n0.25  # a remark\n\n1e1\r\n", "t.txt");
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(*times, (std::vector<double>{0, 0.25, 10}));
}

TEST(ParseArrivalTrace, NamesTheLineThatIsWrong) {
  EXPECT_EQ(parse_arrival_trace("1\nsoon\n", "t.txt").error().message,
            "t.txt:2: a trace has a time in seconds on each line, as 0.25: \"soon\"");
  EXPECT_EQ(parse_arrival_trace("2\n1\n", "t.txt").error().message,
            "t.txt:2: the times of a trace ascend: 1 comes after 2");
  EXPECT_EQ(parse_arrival_trace("# none\n", "t.txt").error().message,
            "t.txt: the trace has no times");
  EXPECT_EQ(parse_arrival_trace(std::string(1'000'000, 'x'), "t.txt").error().message,
            "t.txt:1: a trace has a time in seconds on each line, as 0.25: \"" +
                std::string(60, 'x') + "…\"");
  for (const char* bad : {"-1", "nan", "inf", "1s", "1 2"}) {
    EXPECT_FALSE(parse_arrival_trace(bad, "t.txt")) << bad;
  }
}

// Whoever sends it would wait for its last request without a word.
TEST(ParseArrivalTrace, RefusesATimeThatNobodyWaitsFor) {
  EXPECT_EQ(parse_arrival_trace("0\n5000\n", "t.txt").error().message,
            "t.txt:2: a trace takes at most 3600 s: 5000; --duration ends a longer one");
  EXPECT_EQ(parse_arrival_trace("1e308\n", "t.txt").error().message,
            "t.txt:1: a trace takes at most 3600 s: 1e+308; --duration ends a longer one");
  EXPECT_TRUE(parse_arrival_trace("3600\n", "t.txt"));
  const auto ended =
      parse_arrival_trace("0\n5000\n", "t.txt", std::numeric_limits<double>::infinity());
  ASSERT_TRUE(ended) << "where the trial ends by itself";
  EXPECT_EQ(*ended, (std::vector<double>{0, 5000}));
}

// As an editor of another system writes it; in a message it would not be seen.
TEST(ParseArrivalTrace, PassesOverAByteOrderMark) {
  const auto times = parse_arrival_trace(std::string("\xEF\xBB\xBF") + "0.5\n", "t.txt");
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(*times, std::vector<double>{0.5});
}

}  // namespace
}  // namespace muster
