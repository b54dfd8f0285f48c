#include "simulator/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "simulator/scenarios.h"

namespace muster {
namespace {

using std::chrono::milliseconds;

SimulatedText text(ItemKey key, std::uint32_t tokens, Duration at = Duration{0}) {
  return {.at = TimePoint{} + at, .item = {.key = key, .model = 1, .token_count = tokens}};
}

SimulatedDevice device() {
  return {.state = {.is_eligible = true, .slot_count = 2, .token_budget = 100, .models = {1}},
          .tokens_per_second = 1000,
          .batch_overhead = milliseconds(10)};
}

TEST(Simulation, ABatchTakesItsOverheadAndItsTokens) {
  const auto result = simulate({.devices = {device()}, .texts = {text(0, 100), text(1, 100)}});
  EXPECT_EQ(result.response_seconds, (std::vector<double>{0.11, 0.22}));  // one after the other
  EXPECT_EQ(result.texts_served, std::vector<std::uint64_t>{2});
  EXPECT_DOUBLE_EQ(result.busy_seconds[0], 0.22);
  EXPECT_TRUE(result.violations.empty());
}

TEST(Simulation, AKilledWorkersTextsAreServedAfterItsRestart) {
  const auto result = simulate({.devices = {device()},
                                .texts = {text(0, 100)},
                                .faults = {{.at = TimePoint{} + milliseconds(50)}}});
  // Killed at 50 ms, ready 500 ms later, 110 ms of work.
  EXPECT_EQ(result.response_seconds, std::vector<double>{0.66});
  EXPECT_EQ(result.death_count, 1U);
  EXPECT_TRUE(result.violations.empty());
}

TEST(Simulation, ATextThatKillsFailsAfterTwoDeathsAndTheOthersAreServed) {
  SimulationInput input{.devices = {device(), device(), device()}};
  for (ItemKey key = 0; key < 30; ++key) input.texts.push_back(text(key, 10));
  input.texts[7].kills = true;
  const auto result = simulate(input);
  EXPECT_EQ(result.failed_count, 1U);
  EXPECT_EQ(result.death_count, 2U);
  EXPECT_EQ(result.response_seconds.size(), 29U);
  EXPECT_TRUE(result.violations.empty());
}

TEST(Simulation, AHangingWorkerIsEndedAndItsTextsGoToTheOther) {
  SimulationInput input{.devices = {device(), device()}};
  // The first texts teach both devices their speed: 110 ms for 100 tokens, so a second is allowed.
  for (ItemKey key = 0; key < 2; ++key) input.texts.push_back(text(key, 100));
  for (ItemKey key = 2; key < 4; ++key) input.texts.push_back(text(key, 100, milliseconds(500)));
  input.faults = {{.at = TimePoint{} + milliseconds(550), .kind = SimulatedFaultKind::Hangs}};
  const auto result = simulate(input);
  EXPECT_TRUE(result.violations.empty());
  EXPECT_EQ(result.texts_served, (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(result.response_seconds.back(), 1.11);  // 1 s of silence, then 110 ms
}

TEST(Simulation, ADeviceThatFailsCostsNoTextAndNoOtherDevice) {
  for (const auto kind : {SimulatedFaultKind::Fails, SimulatedFaultKind::FailsButCanary}) {
    SimulationInput input{.devices = {device(), device()}};
    for (ItemKey key = 0; key < 40; ++key) input.texts.push_back(text(key, 50));
    input.faults = {{.at = TimePoint{}, .device = 1, .kind = kind}};
    const auto result = simulate(input);
    EXPECT_TRUE(result.violations.empty()) << result.violations.front();
    EXPECT_EQ(result.failed_count, 0U);
    EXPECT_EQ(result.response_seconds.size(), 40U);
    EXPECT_GE(result.death_count, 1U);
    // One device alone takes 20 batches of 100 tokens: 2.2 s.
    EXPECT_LE(result.end_seconds, 2.2);
  }
}

TEST(Simulation, ANotedViolationIsAFault) {
  // Two texts with one key of the service: the second is in nobody's books. What is checked here is
  // that the checks see something at all.
  SimulationInput input{.devices = {device()}, .texts = {text(0, 10)}};
  input.devices[0].state.models = {2};
  const auto result = simulate(input);
  ASSERT_EQ(result.violations.size(), 1U);  // no device has the model: it waits for ever
  EXPECT_EQ(result.violations[0], "at 0.000000 s: text 0 was lost");
}

TEST(Simulation, TheSameSeedGivesTheSameResult) {
  const auto once = simulate(random_faults(7));
  const auto again = simulate(random_faults(7));
  EXPECT_EQ(once.response_seconds, again.response_seconds);
  EXPECT_EQ(once.texts_served, again.texts_served);
}

TEST(Simulation, UnderRandomFaultsEachTextIsAnsweredOnceAndAllBoundsHold) {
  std::uint64_t deaths = 0;
  std::uint64_t refused = 0;
  std::uint64_t failed = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto result = simulate(random_faults(seed));
    ASSERT_TRUE(result.violations.empty()) << "seed " << seed << ": " << result.violations[0];
    deaths += result.death_count;
    refused += result.refused_count;
    failed += result.failed_count;
  }
  EXPECT_GT(deaths, 200U);  // something did happen
  EXPECT_GT(refused, 200U);
  EXPECT_GT(failed, 20U);
}

TEST(Simulation, ABurstIsHalvedByEveryDynamicStrategy) {
  for (const auto strategy : all_strategies()) {
    if (strategy == Strategy::StaticPartition) continue;  // by hash
    SCOPED_TRACE(strategy_name(strategy));
    const auto result = simulate(burst(strategy, 37, 2));
    const auto [fewest, most] =
        std::minmax_element(result.texts_served.begin(), result.texts_served.end());
    EXPECT_GE(*fewest, 17U);
    EXPECT_LE(*most, 20U);
    EXPECT_EQ(*fewest + *most, 37U);
  }
}

TEST(Simulation, LateBindingUsesASlowDeviceForWhatItIsWorth) {
  const auto input = saturated(Strategy::Auto, {1, 1, 1, 0.25}, 1);
  const auto result = simulate(input);
  double tokens = 0;
  for (const auto& item : input.texts) tokens += item.item.token_count;
  EXPECT_GE(tokens / 1000 / result.end_seconds, 0.95 * 3.25);
}

TEST(Percentile, IsTheNearestRank) {
  EXPECT_EQ(percentile({4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 0.51), 3);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 0.99), 4);
  EXPECT_EQ(percentile({}, 0.5), 0);
}

}  // namespace
}  // namespace muster
