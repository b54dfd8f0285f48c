#include "bench/result/slo.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ParseObjectives, ReadsTimesSharesAndRates) {
  const auto list =
      parse_objectives("ttft_p99<500ms, tpot_p50<50ms,error_rate<1%,throughput>100/s");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->size(), 4U);
  EXPECT_EQ((*list)[0].figure, "ttft_p99");
  EXPECT_EQ((*list)[0].text, "ttft_p99<500ms");
  EXPECT_TRUE((*list)[0].is_upper_limit);
  EXPECT_DOUBLE_EQ((*list)[0].limit, 0.5);
  EXPECT_DOUBLE_EQ((*list)[1].limit, 0.05);
  EXPECT_DOUBLE_EQ((*list)[2].limit, 0.01);
  EXPECT_DOUBLE_EQ((*list)[3].limit, 100);
  EXPECT_FALSE((*list)[3].is_upper_limit);
  EXPECT_DOUBLE_EQ(parse_objectives("latency_p999<2s")->front().limit, 2);
  EXPECT_DOUBLE_EQ(parse_objectives("service_mean<250us")->front().limit, 250e-6);
}

TEST(ParseObjectives, SaysWhatIsWrong) {
  const auto message = [](std::string_view text) { return parse_objectives(text).error().message; };
  EXPECT_EQ(message("ttft_p99"), "an objective has the form ttft_p99<500ms: \"ttft_p99\"");
  EXPECT_EQ(message(""), "an objective has the form ttft_p99<500ms: \"\"");
  EXPECT_EQ(message("ttfb_p99<1s"), "there is no figure ttfb_p99; did you mean ttft_p99?");
  EXPECT_EQ(message("ttft_p99<500"), "ttft_p99 wants a time with its unit, as 500ms: \"500\"");
  EXPECT_EQ(message("error_rate<1ms"), "error_rate wants a share, as 1%: \"1ms\"");
  EXPECT_EQ(message("throughput>fast"), "throughput wants a number a second, as 100: \"fast\"");
  EXPECT_EQ(message("latency_p99<-1ms"),
            "latency_p99 wants a time with its unit, as 500ms: \"-1ms\"");
}

// By 0.99^n <= 0.025, and so on: 6 and 3,688 as percentile.h has them.
TEST(SamplesNeededOf, IsThatOfThePercentile) {
  EXPECT_EQ(samples_needed_of("latency_p50"), 6U);
  EXPECT_EQ(samples_needed_of("ttft_p99"), 368U);
  EXPECT_EQ(samples_needed_of("itl_p999"), 3'688U);
  EXPECT_EQ(samples_needed_of("service_mean"), 1U);
  EXPECT_FALSE(samples_needed_of("error_rate"));
  EXPECT_FALSE(samples_needed_of("throughput"));
}

TEST(JudgeObjectives, AFigureThatIsNotKnownIsNeitherMetNorMissed) {
  const auto list = *parse_objectives("latency_p99<500ms,throughput>100,ttft_p99<1s");
  const auto results = judge_objectives(list, {{"latency_p99", 0.4}, {"throughput", 100}});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0].is_met);
  EXPECT_EQ(results[0].value, 0.4);
  EXPECT_FALSE(results[1].is_met);  // 100 is not above 100
  EXPECT_TRUE(results[1].is_missed());
  EXPECT_FALSE(results[2].is_met);
  EXPECT_FALSE(results[2].is_missed());
  EXPECT_FALSE(results[2].value);
}

}  // namespace
}  // namespace muster
