#include "bench/result/trial_summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace muster {
namespace {

// Answered after `latency`, of which the generator is late for `lag` and the connection busy for
// `wait`.
Sample answered(double intended, double latency, double wait = 0, double lag = 0) {
  const double ready = intended + wait;
  const double started = ready + lag;
  return {.intended = intended,
          .ready = ready,
          .started = started,
          .sent = started + 0.001,
          .first_byte = intended + latency - 0.002,
          .end = intended + latency,
          .status = 200,
          .outcome = SampleEnd::Answered};
}

constexpr TrialPlan kWhole{.is_open_loop = true, .warm_up = {.seconds = 0.0}};

TEST(SummarizeTrial, CountsRequestsAndRates) {
  TrialSamples trial;
  for (int i = 0; i < 100; ++i) trial.samples.push_back(answered(0.1 * i, 0.05));
  trial.samples[3].outcome = SampleEnd::Refused;
  trial.samples[4].outcome = SampleEnd::TimedOut;
  trial.samples[99] = answered(9.9, 0.5);  // ends after the sending
  trial.sending_seconds = 10;
  const auto summary = summarize_trial(trial, kWhole);
  EXPECT_EQ(summary.sent, 100U);
  EXPECT_EQ(summary.answered, 98U);
  EXPECT_EQ(summary.failed.at("refused"), 1U);
  EXPECT_EQ(summary.failed.at("timed_out"), 1U);
  EXPECT_DOUBLE_EQ(summary.sent_per_second, 10);
  EXPECT_DOUBLE_EQ(summary.answered_per_second, 9.7);
  ASSERT_TRUE(summary.latency);
  EXPECT_EQ(summary.latency->count, 98U);
  const auto figures = figures_of(summary);
  EXPECT_DOUBLE_EQ(figures.at("error_rate"), 0.02);
  EXPECT_NEAR(figures.at("latency_p50"), 0.05, 1e-12);
  EXPECT_EQ(figures.count("latency_p99"), 0U);  // of 98 samples there is none
  EXPECT_EQ(figures.count("ttft_p50"), 0U);
}

TEST(SummarizeTrial, ThePartsAddUpToTheLatency) {
  TrialSamples trial;
  for (int i = 0; i < 10; ++i) trial.samples.push_back(answered(i, 0.1 + 0.01 * i, 0.02, 0.003));
  trial.sending_seconds = 10;
  trial.stages = {{"queue", std::vector<double>(10, 0.03)},
                  {"rare", std::vector<double>(10, kNever)}};
  trial.stages[1].seconds[0] = 0.05;
  const auto summary = summarize_trial(trial, kWhole);
  EXPECT_NEAR(summary.parts.connection_wait, 0.02, 1e-9);
  EXPECT_NEAR(summary.parts.lag, 0.003, 1e-9);
  EXPECT_NEAR(summary.parts.sending, 0.001, 1e-9);
  EXPECT_NEAR(summary.parts.receiving, 0.002, 1e-9);
  EXPECT_NEAR(summary.parts.total(), summary.latency->mean.value, 1e-9);
  EXPECT_TRUE(summary.is_saturated);
  ASSERT_EQ(summary.stages.size(), 2U);
  EXPECT_NEAR(summary.stages[0].seconds, 0.03, 1e-12);
  EXPECT_NEAR(summary.stages[1].seconds, 0.005, 1e-12);  // over all answers
}

// Sent at 0 and answered so that the head is here at 0.048: what a server did before that is at
// most so long, but for what it rounds.
TEST(SummarizeTrial, StagesThatAreLongerThanTheAnswerAreDoubted) {
  TrialSamples trial;
  for (int i = 0; i < 4; ++i) trial.samples.push_back(answered(i, 0.05));
  trial.sending_seconds = 4;
  // 0.0495 alone; 0.047 twice, as of a total beside its only part; 0.05 of one that failed.
  trial.stages = {StageColumn{"work", {0.0495, 0.047, kNever, 0.05}},
                  StageColumn{"total", {kNever, 0.047, kNever, 0.05}}};
  trial.samples[3].outcome = SampleEnd::BadStatus;
  trial.stages_left_out = 2;
  const auto doubts = summarize_trial(trial, kWhole).stage_doubts;
  EXPECT_EQ(doubts.too_long, 2U);
  EXPECT_EQ(doubts.left_out, 2U);
  trial.stages = {StageColumn{"work", {0.0485, kNever, kNever, kNever}}};
  EXPECT_EQ(summarize_trial(trial, kWhole).stage_doubts.too_long, 0U) << "0.5 ms are rounding";
}

TEST(SummarizeTrial, RequestsOfOneMomentHaveNoRate) {
  TrialSamples trial;  // a trace whose times are all 0
  for (int i = 0; i < 10; ++i) trial.samples.push_back(answered(0, 0.05));
  const auto summary = summarize_trial(trial, kWhole);
  EXPECT_EQ(summary.sent, 10U);
  EXPECT_EQ(summary.sent_per_second, 0);
  EXPECT_EQ(figures_of(summary).count("throughput"), 0U);
}

TEST(SummarizeTrial, AnAnswerThatCameBeforeTheRequestWasSentHasItsParts) {
  TrialSamples trial;
  trial.sending_seconds = 10;
  trial.samples.push_back(answered(0, 0.1));
  trial.samples[0].sent = kNever;
  const auto summary = summarize_trial(trial, kWhole);
  EXPECT_NEAR(summary.parts.sending, 0.098, 1e-9);
  EXPECT_NEAR(summary.parts.first_byte_wait, 0, 1e-9);
  EXPECT_NEAR(summary.parts.total(), 0.1, 1e-9);
}

TEST(SummarizeTrial, RequestsThatWaitedInVainSaturateToo) {
  TrialSamples trial;
  trial.sending_seconds = 10;
  trial.samples.push_back(answered(0, 0.05));
  EXPECT_FALSE(summarize_trial(trial, kWhole).is_saturated);
  trial.samples.push_back({.intended = 1, .end = 70});  // unsent
  EXPECT_TRUE(summarize_trial(trial, kWhole).is_saturated);
  trial.samples.back() = answered(1, 61, /*wait=*/1);
  trial.samples.back().outcome = SampleEnd::TimedOut;
  EXPECT_TRUE(summarize_trial(trial, kWhole).is_saturated);
}

TEST(SummarizeTrial, AWarmUpIsNotCounted) {
  TrialSamples trial;
  for (int i = 0; i < 100; ++i) trial.samples.push_back(answered(0.1 * i, i < 50 ? 5.0 : 0.05));
  trial.sending_seconds = 10;
  const auto summary = summarize_trial(trial, {.warm_up = {.seconds = 4.95}});
  EXPECT_EQ(summary.sent, 50U);
  EXPECT_EQ(summary.warm_up_sent, 50U);
  EXPECT_TRUE(summary.is_warm_up_given);
  EXPECT_NEAR(summary.latency->most, 0.05, 1e-12);
  EXPECT_NEAR(summary.counted_seconds, 5.05, 1e-12);
}

TEST(SummarizeTrial, ALateGeneratorMakesATrialInvalid) {
  TrialSamples trial;
  // Two of a hundred are 3 ms late, which the 99th percentile sees.
  for (int i = 0; i < 100; ++i)
    trial.samples.push_back(answered(0.1 * i, 0.05, 0, i < 2 ? 0.003 : 0));
  trial.sending_seconds = 10;
  const auto late = summarize_trial(trial, kWhole);
  EXPECT_EQ(late.generator.what, "send lag");
  EXPECT_NEAR(late.generator.lag_p99, 0.003, 1e-9);
  EXPECT_DOUBLE_EQ(late.generator.limit, 0.001);
  EXPECT_FALSE(late.is_valid());
  trial.samples[0] = answered(0, 0.05);
  EXPECT_TRUE(summarize_trial(trial, kWhole).is_valid());
}

TEST(SummarizeTrial, AClosedLoopIsJudgedByItsTimer) {
  TrialSamples trial;
  for (int i = 0; i < 100; ++i) trial.samples.push_back(answered(0.1 * i, 0.05));
  trial.sending_seconds = 10;
  trial.tick_lateness.assign(100, 0.0001);
  EXPECT_TRUE(summarize_trial(trial, {.warm_up = {.seconds = 0.0}}).is_valid());
  trial.tick_lateness[0] = trial.tick_lateness[1] = 0.02;
  const auto summary = summarize_trial(trial, {.warm_up = {.seconds = 0.0}});
  EXPECT_EQ(summary.generator.what, "timer lateness");
  EXPECT_FALSE(summary.is_valid());
}

// Ten requests a second for ten seconds; the answer to number i takes `latency(i)`.
TrialSummary tenths(const std::function<double(int)>& latency, double warm_up = 0) {
  TrialSamples trial;
  for (int i = 0; i < 100; ++i) trial.samples.push_back(answered(0.1 * i, latency(i)));
  trial.sending_seconds = 10;
  return summarize_trial(trial, {.is_open_loop = true, .warm_up = {.seconds = warm_up}});
}

// Half of the answers come when nothing is sent any more, and yet none has waited for another.
TEST(KeepsUp, LongAnswersAreNoQueue) {
  const auto slow = tenths([](int) { return 5.0; });
  EXPECT_NEAR(slow.early_latency, 5, 1e-9);
  EXPECT_LT(slow.answered_per_second, 0.6 * slow.sent_per_second);
  EXPECT_TRUE(keeps_up(slow));
  EXPECT_TRUE(keeps_up(tenths([](int) { return 0.01; })));
  EXPECT_TRUE(keeps_up(tenths([](int) { return 60.0; })));
  // The answers to the first six seconds stand for those that come behind the end.
  EXPECT_TRUE(keeps_up(tenths([](int) { return 5.0; }, 5.95)));
}

// Of ten a second the server does eight: each waits 0.025 s longer than the one before. Those of
// the first 7.9 s are answered within the ten.
TEST(KeepsUp, AQueueThatGrowsIsOne) {
  EXPECT_FALSE(keeps_up(tenths([](int i) { return 0.1 + 0.025 * i; })));
  EXPECT_FALSE(keeps_up(tenths([](int i) { return 1 + 0.025 * i; })));
  EXPECT_FALSE(keeps_up(tenths([](int i) { return 0.1 + 0.1 * i; })));
}

// Of ten a second the server does five, the last at 20.05 s: 49 of the answers come in the ten.
TEST(SummarizeTrial, KnowsWhetherTheServerHasKeptUp) {
  const auto queue = tenths([](int i) { return 0.25 + 0.1 * i; });
  EXPECT_FALSE(queue.has_kept_up);
  EXPECT_EQ(queue.missed_at_end, 51U);
  EXPECT_DOUBLE_EQ(queue.answered_per_second, 4.9);
  EXPECT_TRUE(tenths([](int) { return 5.0; }).has_kept_up);
  TrialSamples closed;
  closed.samples = {answered(0, 3), answered(3, 3)};
  closed.sending_seconds = 4;
  EXPECT_TRUE(summarize_trial(closed, {.warm_up = {.seconds = 0.0}}).has_kept_up);
}

TEST(LagLimit, IsAHundredthOfLongLatencies) {
  EXPECT_DOUBLE_EQ(lag_limit(0.002), 0.001);
  EXPECT_DOUBLE_EQ(lag_limit(5), 0.05);
}

TEST(SummarizeTrial, TimesTokens) {
  TrialSamples trial;
  for (int i = 0; i < 10; ++i) {
    auto sample = answered(i, 0.9);
    sample.first_token = i + 0.2;
    sample.last_token = i + 0.8;
    sample.token_events = 4;
    sample.gaps_begin = trial.gaps.size();
    trial.gaps.insert(trial.gaps.end(), {0.1F, 0.2F, 0.3F});
    sample.input_tokens = 10;
    sample.output_tokens = 7;
    trial.samples.push_back(sample);
  }
  trial.sending_seconds = 10;
  auto summary = summarize_trial(trial, kWhole);
  EXPECT_NEAR(summary.first_token->mean.value, 0.2, 1e-9);
  EXPECT_EQ(summary.token_gap->count, 30U);
  EXPECT_NEAR(summary.token_gap->mean.value, 0.2, 1e-6);
  EXPECT_NEAR(summary.per_token->mean.value, 0.1, 1e-9);  // 0.6 s for the six after the first
  ASSERT_TRUE(summary.tokens);
  EXPECT_EQ(summary.tokens->input, 100U);
  EXPECT_EQ(summary.tokens->output, 70U);
  EXPECT_NEAR(summary.tokens->output_per_second.value_or(0), 7, 1e-9);  // all come in the ten
  EXPECT_EQ(summary.tokens->output_source, "usage");
  for (auto& sample : trial.samples) sample.output_tokens = -1;
  summary = summarize_trial(trial, kWhole);
  EXPECT_EQ(summary.tokens->output, 40U);
  EXPECT_EQ(summary.tokens->output_source, "events");
}

// A server that sends its answers whole does not make tokens in no time.
TEST(SummarizeTrial, AnAnswerInOnePieceHasNoTimePerToken) {
  TrialSamples trial;
  for (int i = 0; i < 10; ++i) {
    auto sample = answered(i, 0.9);
    sample.first_token = sample.last_token = i + 0.8;
    sample.token_events = 1;
    sample.output_tokens = 16;
    trial.samples.push_back(sample);
  }
  trial.sending_seconds = 10;
  const auto summary = summarize_trial(trial, kWhole);
  EXPECT_FALSE(summary.per_token);
  EXPECT_EQ(figures_of(summary).count("tpot_p50"), 0U);
  EXPECT_EQ(summary.tokens->output, 160U);
  EXPECT_EQ(summary.tokens->output_pieces, 10U);
}

// Replies of 20 pieces, one each 0.15 s, one behind the other: 13 pieces come in two seconds, and
// in four 20 and 6.
TEST(SummarizeTrial, TokensCountAsTheyCome) {
  TrialSamples trial;
  for (int i = 0; i < 2; ++i) {
    auto sample = answered(3.0 * i, 3.01);
    sample.first_token = 3.0 * i + 0.15;
    sample.last_token = 3.0 * (i + 1);
    sample.token_events = 20;
    sample.gaps_begin = trial.gaps.size();
    trial.gaps.insert(trial.gaps.end(), 19, 0.15F);
    sample.input_tokens = 5;
    sample.output_tokens = 40;  // two in each piece
    trial.samples.push_back(sample);
  }
  trial.sending_seconds = 4;
  const auto longer = summarize_trial(trial, {.warm_up = {.seconds = 0.0}});
  EXPECT_DOUBLE_EQ(longer.answered_per_second, 0.25);
  EXPECT_EQ(longer.missed_at_end, 1U);
  EXPECT_NEAR(longer.tokens->output_per_second.value_or(0), 52.0 / 4, 1e-9);
  EXPECT_EQ(longer.tokens->output_pieces, 26U);
  EXPECT_DOUBLE_EQ(rate_count(longer, "token_throughput"), 26);
  EXPECT_DOUBLE_EQ(rate_count(longer, "throughput"), 1);
  EXPECT_NEAR(longer.tokens->input_per_second.value_or(0), 1.25, 1e-9);
  trial.samples.pop_back();
  trial.sending_seconds = 2;
  const auto none = summarize_trial(trial, {.warm_up = {.seconds = 0.0}});
  EXPECT_FALSE(none.has_rate());
  EXPECT_EQ(none.missed_at_end, 1U);
  EXPECT_NEAR(none.tokens->output_per_second.value_or(0), 26.0 / 2, 1e-9);
  EXPECT_FALSE(none.tokens->input_per_second);
  EXPECT_EQ(figures_of(none).count("throughput"), 0U);
  EXPECT_NEAR(figures_of(none).at("token_throughput"), 13, 1e-9);
  trial.sending_seconds = 0.1;
  const auto early = summarize_trial(trial, {.warm_up = {.seconds = 0.0}});
  EXPECT_EQ(early.tokens->output, 40U);
  EXPECT_FALSE(early.tokens->output_per_second);
  EXPECT_EQ(figures_of(early).count("token_throughput"), 0U);
}

TEST(SummarizeTrial, WhatNothingWritesHasNoRateAndNoSource) {
  TrialSamples trial;
  for (int i = 0; i < 10; ++i) {
    trial.samples.push_back(answered(i, 0.5));
    trial.samples.back().input_tokens = 7;
  }
  trial.sending_seconds = 10;
  const auto summary = summarize_trial(trial, kWhole);
  EXPECT_EQ(summary.tokens->output, 0U);
  EXPECT_FALSE(summary.tokens->output_per_second);
  EXPECT_EQ(summary.tokens->output_source, "");
  EXPECT_NEAR(summary.tokens->input_per_second.value_or(0), 7, 1e-9);
  EXPECT_NEAR(figures_of(summary).at("token_throughput"), 7, 1e-9);
  EXPECT_DOUBLE_EQ(rate_count(summary, "token_throughput"), 10) << "they come with the answers";
}

// Of ten a second, each for five: 50 answers come behind the end, and the 50 of the first 4.95 s,
// where these are cut, come within the rest.
TEST(SummarizeTrial, AnswersOfTheWarmUpStandForThoseBehindTheEnd) {
  EXPECT_EQ(tenths([](int) { return 5.05; }).missed_at_end, 50U);
  EXPECT_EQ(tenths([](int) { return 5.05; }, 4.95).missed_at_end, 0U);
  EXPECT_TRUE(is_cut_short(50, 100));
  EXPECT_FALSE(is_cut_short(1, 100));
}

TEST(SummarizeTrial, TakesATrialWithoutAnswers) {
  TrialSamples trial;
  trial.samples.push_back({.intended = 0, .end = 1, .outcome = SampleEnd::Broken});
  trial.sending_seconds = 1;
  const auto summary = summarize_trial(trial, kWhole);
  EXPECT_EQ(summary.answered, 0U);
  EXPECT_FALSE(summary.latency);
  EXPECT_EQ(figures_of(summary).at("error_rate"), 1);
  EXPECT_EQ(figures_of(summary).at("throughput"), 0);
}

}  // namespace
}  // namespace muster
