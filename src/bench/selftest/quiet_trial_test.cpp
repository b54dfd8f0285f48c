#include "bench/selftest/quiet_trial.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

/// Trials that lost these shares; each has its number as its seconds of sending.
struct Trials {
  std::vector<std::optional<double>> stolen;
  std::size_t count = 0;
  std::vector<double> told = {};

  Result<TrialSamples> quietest() {
    return quietest_trial(
        [this]() -> Result<WatchedTrial> {
          if (count == stolen.size()) return Error{ErrorKind::Unavailable, "gone"};
          WatchedTrial trial;
          trial.stolen_share = stolen[count++];
          trial.samples.sending_seconds = static_cast<double>(count);
          return trial;
        },
        [this](double share) { told.push_back(share); });
  }
};

TEST(QuietTrial, OneIsEnoughWhereLittleWasStolen) {
  Trials trials{.stolen = {0.0004, 0.0}};
  EXPECT_EQ(trials.quietest()->sending_seconds, 1);
  EXPECT_EQ(trials.count, 1U);
  EXPECT_TRUE(trials.told.empty());
}

TEST(QuietTrial, OneIsEnoughWhereNothingIsKnown) {
  Trials trials{.stolen = {std::nullopt, 0.0}};
  EXPECT_EQ(trials.quietest()->sending_seconds, 1);
  EXPECT_EQ(trials.count, 1U);
}

TEST(QuietTrial, ADisturbedOneIsMadeAgain) {
  Trials trials{.stolen = {0.01, 0.0001, 0.0}};
  EXPECT_EQ(trials.quietest()->sending_seconds, 2);
  EXPECT_EQ(trials.count, 2U);
  EXPECT_EQ(trials.told, std::vector<double>{0.01});
}

TEST(QuietTrial, OfThreeDisturbedOnesTheLeastIsTaken) {
  Trials trials{.stolen = {0.01, 0.002, 0.03, 0.0}};
  EXPECT_EQ(trials.quietest()->sending_seconds, 2);
  EXPECT_EQ(trials.count, 3U);
  EXPECT_EQ(trials.told, (std::vector<double>{0.01, 0.002}));
}

TEST(QuietTrial, AFailureIsReturned) {
  Trials trials{.stolen = {0.01}};
  EXPECT_EQ(trials.quietest().error().message, "gone");
}

}  // namespace
}  // namespace muster
