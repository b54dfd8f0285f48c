#include "sweep/lost_server.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

BenchResult result_of(const std::vector<SampleEnd>& ends) {
  BenchTrial trial;
  for (const auto end : ends) trial.samples.samples.push_back({.outcome = end});
  trial.samples.problems = {"h:1: cannot connect: Connection refused"};
  BenchResult result;
  result.points.push_back({.load = "1 client", .trials = {trial}});
  return result;
}

constexpr auto kOk = SampleEnd::Answered;
constexpr auto kBroken = SampleEnd::Broken;

TEST(LostServer, IsOneWhoseLastConnectionsBroke) {
  EXPECT_EQ(lost_server(result_of({kOk, kOk, kBroken, kBroken, kBroken})),
            "h:1: cannot connect: Connection refused");
  EXPECT_TRUE(lost_server(result_of({kBroken, kBroken})));
}

TEST(LostServer, IsNoneThatAnswersAgainOrOnlyRefuses) {
  EXPECT_FALSE(lost_server(result_of({kOk, kBroken, kBroken, kBroken, kOk})));
  EXPECT_FALSE(lost_server(result_of({kOk, kBroken, kBroken})));
  EXPECT_FALSE(
      lost_server(result_of({kOk, SampleEnd::Refused, SampleEnd::Refused, SampleEnd::Refused})));
  EXPECT_FALSE(lost_server(result_of({})));
}

}  // namespace
}  // namespace muster
