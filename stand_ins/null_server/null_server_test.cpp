#include "null_server/null_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "bench/load/api_requests.h"
#include "bench/load/load_generator.h"
#include "bench/result/trial_summary.h"
#include "null_server/null_answers.h"

namespace muster {
namespace {

// A null server on a thread of its own.
class NullServerTest : public ::testing::Test {
 protected:
  void start(const NullServerOptions& options) {
    auto server = NullServer::start(loop_, options);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    target_ = *HttpClientTarget::find("http://127.0.0.1:" + std::to_string(server_->port()));
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~NullServerTest() override {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
  }

  TrialSamples run(const LoadOptions& load) {
    return run(prepare_plain_requests(target_.url, "/", {}, {}), load);
  }
  TrialSamples run(const PreparedRequests& requests, const LoadOptions& load) {
    auto trial = run_load(target_, requests.bytes, requests.make_reader, load);
    EXPECT_TRUE(trial) << trial.error().message;
    return trial ? std::move(*trial) : TrialSamples{};
  }

  EventLoop loop_;
  std::unique_ptr<NullServer> server_;
  HttpClientTarget target_;
  std::thread thread_;
};

double stage(const TrialSamples& trial, const std::string& name, std::size_t at) {
  const auto found = std::ranges::find(trial.stages, name, &StageColumn::name);
  return found == trial.stages.end() ? kNever : found->seconds[at];
}

TEST_F(NullServerTest, TakesTheServiceTimesOfItsSeedInTheOrderOfArrival) {
  start({.law = ServiceLaw::Exponential, .mean_seconds = 1e-4, .seed = 9});
  const auto trial = run({.clients = 1, .requests_most = 50});
  ServiceTimes expected(ServiceLaw::Exponential, 1e-4, 9);
  ASSERT_EQ(trial.samples.size(), 50U);
  for (std::size_t i = 0; i < 50; ++i) {
    const double service = expected.next();
    // The header has nanoseconds.
    EXPECT_NEAR(stage(trial, "service", i), service, 1e-9);
    EXPECT_EQ(stage(trial, "queue", i), 0);  // one client never waits
    EXPECT_GE(trial.samples[i].service(), service);
  }
}

TEST_F(NullServerTest, WhatComesTogetherWaitsInOneQueue) {
  start({.law = ServiceLaw::Deterministic, .mean_seconds = 0.5});
  const auto trial =
      run({.arrivals = ArrivalPlan{.law = ArrivalLaw::Trace, .trace = {0, 0, 0, 0}}});
  ASSERT_EQ(trial.samples.size(), 4U);
  std::vector<double> waits;
  for (std::size_t i = 0; i < 4; ++i) waits.push_back(stage(trial, "queue", i));
  std::ranges::sort(waits);
  EXPECT_EQ(waits[0], 0);
  // Each service takes 500 ms; they arrive within less than one.
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_GT(waits[i], waits[i - 1]);
    EXPECT_LE(waits[i], 0.5 * static_cast<double>(i));
  }
  std::vector<double> ends;
  for (const auto& sample : trial.samples) ends.push_back(sample.end);
  EXPECT_GE(*std::ranges::max_element(ends), 2.0);
}

TEST_F(NullServerTest, AnswersTheApisThatABenchmarkAsksFor) {
  start({.token_gap_seconds = 1e-4});
  const std::vector<std::string> texts{"one two", "three"};
  for (const auto api :
       {BenchApi::Embeddings, BenchApi::Rerank, BenchApi::Chat, BenchApi::Completions}) {
    SCOPED_TRACE(bench_api_name(api));
    const auto trial = run(
        prepare_requests(target_.url, {.api = api, .model = "null", .output_tokens = {.median = 5}},
                         texts, false),
        {.requests_most = 4});
    ASSERT_EQ(trial.samples.size(), 4U);
    for (const auto& sample : trial.samples) {
      EXPECT_EQ(sample.outcome, SampleEnd::Answered);
      EXPECT_GT(sample.input_tokens, 0);
      const bool streams = api == BenchApi::Chat || api == BenchApi::Completions;
      EXPECT_EQ(sample.token_events, streams ? 5U : 0U);
      EXPECT_EQ(sample.output_tokens, streams ? 5 : -1);
    }
    EXPECT_TRUE(trial.problems.empty());
  }
}

TEST_F(NullServerTest, TokensOfAStreamComeAGapApart) {
  start({.token_gap_seconds = 2e-3});
  const std::vector<std::string> texts{"x"};
  const auto trial =
      run(prepare_requests(target_.url, {.api = BenchApi::Chat, .output_tokens = {.median = 6}},
                           texts, false),
          {.requests_most = 2});
  for (const auto& sample : trial.samples) {
    // Five gaps from the first to the last; each is due at its own time, so none is lost to
    // lateness.
    EXPECT_GE(sample.last_token - sample.intended, 10e-3);
  }
}

TEST_F(NullServerTest, NonsenseIsSeenAsSuch) {
  start({.speaks_nonsense = true});
  const std::vector<std::string> texts{"x"};
  for (const auto api : {BenchApi::Embeddings, BenchApi::Completions}) {
    const auto trial =
        run(prepare_requests(target_.url, {.api = api}, texts, false), {.requests_most = 2});
    ASSERT_EQ(trial.samples.size(), 2U);
    EXPECT_EQ(trial.samples[0].outcome, SampleEnd::Unreadable);
    EXPECT_EQ(trial.problems.size(), 1U);
  }
}

TEST_F(NullServerTest, FailsEachSoManieth) {
  start({.fail_every = 3});
  const auto trial = run({.requests_most = 9});
  EXPECT_EQ(std::ranges::count(trial.samples, SampleEnd::BadStatus, &Sample::outcome), 3);
}

TEST_F(NullServerTest, StagesTakeTheirTimeAndAreReported) {
  start({.stages = {{"tokenize", 3e-3}}});
  const auto trial = run({.requests_most = 3});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(stage(trial, "tokenize", i), 3e-3, 1e-9);
    EXPECT_GE(trial.samples[i].service(), 3e-3);
  }
}

TEST_F(NullServerTest, AFreezeHoldsEverythingUp) {
  start({.freeze_at = 0.01, .freeze_seconds = 0.1});
  const auto trial = run(
      {.arrivals = ArrivalPlan{.law = ArrivalLaw::Constant, .rate_begin = 500}, .seconds = 0.1});
  // Those of the freeze wait for its end: at 500/s in 0.1 s.
  const auto slow = std::ranges::count_if(
      trial.samples, [](const Sample& sample) { return sample.latency() > 0.02; });
  EXPECT_GE(slow, 30);
  EXPECT_TRUE(std::ranges::all_of(trial.samples, &Sample::is_answered));
}

TEST_F(NullServerTest, AWarmUpIsSlowAtFirst) {
  start({.law = ServiceLaw::Deterministic,
         .mean_seconds = 1e-4,
         .warm_up_seconds = 1000,
         .warm_up_factor = 3});
  const auto trial = run({.requests_most = 1});
  EXPECT_NEAR(stage(trial, "service", 0), 3e-4, 1e-7);
}

TEST(ReadNullRequest, TakesWhatItKnowsAndDefaultsForTheRest) {
  using Kind = NullRequest::Kind;
  EXPECT_EQ(read_null_request("/", "").kind, Kind::Plain);
  const auto embeddings = read_null_request("/v1/embeddings", R"({"input":["a b","c"]})");
  EXPECT_EQ(embeddings.kind, Kind::Embeddings);
  EXPECT_EQ(embeddings.item_count, 2U);
  EXPECT_EQ(read_null_request("/v1/embeddings", R"({"input":"a"})").item_count, 1U);
  EXPECT_EQ(read_null_request("/v1/embeddings", "no json").item_count, 1U);
  const auto chat =
      read_null_request("/v1/chat/completions", R"({"max_completion_tokens":7,"stream":true})");
  EXPECT_EQ(chat.output_tokens, 7U);
  EXPECT_TRUE(chat.is_stream);
  EXPECT_FALSE(read_null_request("/v1/completions", "{}").is_stream);
}

}  // namespace
}  // namespace muster
