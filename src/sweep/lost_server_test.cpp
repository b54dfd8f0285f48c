#include "sweep/lost_server.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

BenchResult result_of(const std::vector<SampleEnd>& ends) {
  BenchTrial trial;
  for (const auto end : ends) trial.samples.samples.push_back({.outcome = end});
  trial.samples.problems = {"h:1: cannot connect: Connection refused", "the status is 429"};
  trial.samples.last_broken = "h:1: cannot connect: Connection refused";
  BenchResult result;
  result.points.push_back({.load = "1 client", .trials = {trial}});
  return result;
}

constexpr auto kOk = SampleEnd::Answered;
constexpr auto kBroken = SampleEnd::Broken;

const auto kAnswers = [] { return true; };
const auto kIsSilent = [] { return false; };

TEST(LostServer, IsOneWhoseLastConnectionsBroke) {
  EXPECT_EQ(lost_server(result_of({kOk, kOk, kBroken, kBroken, kBroken}), kAnswers),
            "h:1: cannot connect: Connection refused");
  EXPECT_TRUE(lost_server(result_of({kBroken, kBroken}), kAnswers));
}

// It was killed in the last requests of a point, and so few of them broke. They stand in the order
// in which they were to be sent: a shorter one behind the broken one may have been answered before.
TEST(LostServer, IsOneThatBrokeAConnectionAndDoesNotAnswerNow) {
  EXPECT_EQ(lost_server(result_of({kOk, kOk, kOk, kBroken}), kIsSilent),
            "h:1: cannot connect: Connection refused");
  EXPECT_TRUE(lost_server(result_of({kOk, kOk, kBroken, kBroken}), kIsSilent));
  EXPECT_TRUE(lost_server(result_of({kOk, kBroken, kOk}), kIsSilent));
}

TEST(LostServer, IsNoneThatAnswersAgainOrOnlyRefuses) {
  EXPECT_FALSE(lost_server(result_of({kOk, kBroken, kBroken, kBroken, kOk}), kAnswers));
  EXPECT_FALSE(lost_server(result_of({kOk, kBroken, kBroken}), kAnswers));
  EXPECT_FALSE(lost_server(
      result_of({kOk, SampleEnd::Refused, SampleEnd::Refused, SampleEnd::Refused}), kIsSilent));
  EXPECT_FALSE(lost_server(result_of({}), kIsSilent));
}

TEST(LostServer, IsNotAskedForWhereNoConnectionBroke) {
  bool is_asked = false;
  const auto answers = [&is_asked] {
    is_asked = true;
    return false;
  };
  EXPECT_FALSE(lost_server(result_of({kOk, SampleEnd::TimedOut, kOk}), answers));
  EXPECT_FALSE(is_asked);
}

}  // namespace
}  // namespace muster
