#include "report/sweep_lines.h"

#include <gtest/gtest.h>

#include "report/report_fixture.h"

namespace muster {
namespace {

TEST(SweepLines, HaveALineForEachPrecision) {
  const std::vector<ReportResult> results{
      made_point("a", "8", "bf16", 300), made_point("b", "1", "bf16", 100),
      made_point("c", "1", "fp32", 50), made_point("d", "8", "fp32", 90)};
  EXPECT_EQ(varying_settings(results), (std::vector<std::string>{"batch_size", "torch_dtype"}));
  const auto sweeps = sweep_lines(results);
  ASSERT_EQ(sweeps.size(), 1U);
  EXPECT_EQ(sweeps[0].axis, "batch_size");
  EXPECT_EQ(sweeps[0].unit, "prompts/s");
  ASSERT_EQ(sweeps[0].lines.size(), 2U);
  const auto& bf16 = sweeps[0].lines[0];
  EXPECT_EQ(bf16.name, "torch_dtype=bf16");
  ASSERT_EQ(bf16.spots.size(), 2U);
  EXPECT_EQ(bf16.spots[0].x, 1);
  EXPECT_EQ(bf16.spots[0].throughput->value, 100);
  EXPECT_EQ(bf16.spots[1].x, 8);
  EXPECT_DOUBLE_EQ(bf16.spots[1].latency_p99->value, 0.08);
  EXPECT_TRUE(bf16.spots[1].is_trusted);
}

TEST(SweepLines, MarkPointsThatAreNotToBeTrusted) {
  std::vector<ReportResult> results{made_point("a", "1", "bf16", 100),
                                    made_point("b", "8", "bf16", 300)};
  results[1].figures.invalid_reason = "a device was away";
  const auto sweeps = sweep_lines(results);
  ASSERT_EQ(sweeps.size(), 1U);
  EXPECT_EQ(sweeps[0].lines[0].name, "");
  EXPECT_FALSE(sweeps[0].lines[0].spots[1].is_trusted);
}

// Of 20 requests a second with four prompts each, 19 to 21.
TEST(PromptsPerSecond, HaveTheIntervalOfTheRequests) {
  auto point = made_point("a", "4", "bf16", 80);
  point.loads[0].trials.push_back(made_trial(40, 0.02));
  point.loads[0].over_trials["throughput"] = {.value = 20, .low = 19, .high = 21};
  const auto rate = prompts_per_second(point);
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->value, 80);
  EXPECT_EQ(*rate->low, 76);
  EXPECT_EQ(*rate->high, 84);
  EXPECT_FALSE(prompts_per_second(made_result("a.json", {made_trial(40, 0.02)})));
}

TEST(SweepLines, ReadClientsAndRatesOffTheLoads) {
  auto result = made_result("a.json", {made_trial(40, 0.02)});
  auto other = result.loads.front();
  other.name = "poisson 50/s";
  result.loads.push_back(other);
  other.name = "poisson 10..200/s";
  result.loads.push_back(other);
  other.name = "8 clients";
  result.loads.push_back(other);
  const std::vector<ReportResult> results{result};
  const auto sweeps = sweep_lines(results);
  ASSERT_EQ(sweeps.size(), 1U)
      << "one number of clients is no sweep, and a rising rate has no place";
  EXPECT_EQ(sweeps[0].axis, "rate");
  EXPECT_EQ(sweeps[0].unit, "requests/s");
  ASSERT_EQ(sweeps[0].lines[0].spots.size(), 2U);
  EXPECT_EQ(sweeps[0].lines[0].spots[0].x, 50);
  EXPECT_EQ(sweeps[0].lines[0].spots[1].x, 100);
}

}  // namespace
}  // namespace muster
