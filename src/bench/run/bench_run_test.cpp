#include "bench/run/bench_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "net/http_server.h"

namespace muster {
namespace {

class BenchRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    HttpServerOptions options;
    options.listen = {"127.0.0.1", 0};
    auto server = HttpServer::start(options, [](const HttpRequest&, const HttpRespond& respond) {
      respond({.body = "ok", .headers = {{"Server", "test"}}});
    });
    ASSERT_TRUE(server);
    server_ = std::move(*server);
    target_ = *HttpClientTarget::find("http://127.0.0.1:" + std::to_string(server_->port()));
    requests_ = prepare_plain_requests(target_.url, "/", {}, {});
  }

  BenchRunOptions options(std::vector<LoadOptions> loads) {
    BenchRunOptions made{
        .target = &target_, .requests = &requests_, .points = {}, .cooldown_seconds = 0};
    for (const auto& load : loads) made.points.push_back({load_name(load), load});
    return made;
  }

  std::unique_ptr<HttpServer> server_;
  HttpClientTarget target_;
  PreparedRequests requests_;
};

TEST_F(BenchRunTest, RunsEachLoadAsOftenAsItIsTold) {
  auto run = options({{.clients = 1, .requests_most = 10}, {.clients = 2, .requests_most = 10}});
  run.trials = 3;
  run.seed = 7;
  BenchResult result;
  ASSERT_TRUE(run_bench(run, result));
  ASSERT_EQ(result.points.size(), 2U);
  EXPECT_EQ(result.points[0].load, "1 client");
  EXPECT_EQ(result.points[1].load, "2 clients");
  EXPECT_EQ(result.server, "test");
  EXPECT_EQ(std::ranges::count(result.order, 0U), 3);
  EXPECT_EQ(std::ranges::count(result.order, 1U), 3);
  for (const auto& point : result.points) {
    ASSERT_EQ(point.trials.size(), 3U);
    for (std::uint64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(point.trials[i].seed, 7 + i);
      EXPECT_EQ(point.trials[i].summary.answered, 10U);
    }
  }
  BenchResult again;
  ASSERT_TRUE(run_bench(run, again));
  EXPECT_EQ(again.order, result.order);
}

TEST_F(BenchRunTest, CallsAroundTheRequestsOfEachTrial) {
  auto run = options({{.clients = 1, .requests_most = 10}});
  run.trials = 2;
  std::string calls;
  run.on_trial_begin = [&calls] {
    calls += "b";
    return Status(Done{});
  };
  run.on_trial_end = [&calls] {
    calls += "e";
    return Status(Done{});
  };
  BenchResult result;
  ASSERT_TRUE(run_bench(run, result));
  EXPECT_EQ(calls, "bebe");
  run.on_trial_end = [] { return Status(Error{ErrorKind::Unavailable, "no sampler"}); };
  BenchResult ended;
  EXPECT_EQ(run_bench(run, ended).error().message, "no sampler");
}

TEST_F(BenchRunTest, JudgesObjectives) {
  auto run = options({{.clients = 1, .requests_most = 100}});
  run.objectives = *parse_objectives("error_rate<1%,latency_p50<1us");
  BenchResult result;
  ASSERT_TRUE(run_bench(run, result));
  ASSERT_EQ(result.points[0].objectives.size(), 2U);
  EXPECT_TRUE(result.points[0].objectives[0].is_met);
  EXPECT_FALSE(result.points[0].objectives[1].is_met);
  EXPECT_FALSE(result.meets_objectives());
}

TEST_F(BenchRunTest, LooksForARateThatMissesTheObjective) {
  // Nothing is answered within no time: every rate misses, down to the lowest.
  const ArrivalPlan plan{.law = ArrivalLaw::Constant, .rate_begin = 0.04};  // the first at once
  auto run = options({{.arrivals = plan, .requests_most = 1}});
  run.objectives = *parse_objectives("latency_mean<0s");
  run.finds_peak = true;
  BenchResult result;
  ASSERT_TRUE(run_bench(run, result));
  ASSERT_TRUE(result.peak);
  EXPECT_FALSE(result.peak->rate);
  EXPECT_EQ(result.peak->missed, 0.01);
  EXPECT_EQ(result.points.size(), 3U);
  EXPECT_EQ(result.points[1].load, "constant 0.02/s");
  EXPECT_TRUE(result.misses_objectives());
}

// 368 answers and 30 % are 478.4.
TEST(SearchSeconds, AreAsManyAsThePercentilesNeed) {
  const auto objectives = *parse_objectives("latency_p99<1s,itl_p999<1s,error_rate<1%");
  EXPECT_NEAR(search_seconds(objectives, 10, 10, 120, {}), 47.84, 1e-9);
  EXPECT_EQ(search_seconds(objectives, 100, 10, 120, {}), 10);
  EXPECT_EQ(search_seconds(objectives, 2, 10, 120, {}), 10) << "239.2 s are more than it may take";
  EXPECT_EQ(search_seconds(objectives, 10, 10, 0, {}), 10) << "--duration is what it is";
}

// Of 10 s the first nine are not counted, and 4.784 s are needed: 13.784 s.
TEST(SearchSeconds, AddAGivenWarmUpToWhatIsNeeded) {
  const auto objectives = *parse_objectives("latency_p99<1s");
  EXPECT_NEAR(search_seconds(objectives, 100, 10, 120, {.seconds = 9.0}), 13.784, 1e-9);
  EXPECT_EQ(search_seconds(objectives, 100, 10, 12, {.seconds = 9.0}), 10);
}

// 84 requests of 20 ms each: their 50th percentile is known, and their 99th is not.
TEST(RateOutcome, IsUnknownWhereRequestsAreTooFew) {
  BenchPoint point{.load = "poisson 10/s", .trials = {BenchTrial{}}};
  auto& trial = point.trials[0];
  for (int i = 0; i < 84; ++i) {
    const double at = 0.1 * i;
    trial.samples.samples.push_back({.intended = at,
                                     .ready = at,
                                     .started = at,
                                     .sent = at,
                                     .first_byte = at + 0.02,
                                     .end = at + 0.02,
                                     .status = 200,
                                     .outcome = SampleEnd::Answered});
  }
  trial.samples.sending_seconds = 8.4;
  trial.summary =
      summarize_trial(trial.samples, {.is_open_loop = true, .warm_up = {.seconds = 0.0}});
  const auto outcome = [&](std::string_view objectives) {
    point.objectives = judge_point(*parse_objectives(objectives), point);
    return rate_outcome(point);
  };
  EXPECT_EQ(outcome("latency_p50<50ms"), RateOutcome::Met);
  EXPECT_EQ(outcome("latency_p50<10ms,latency_p99<50ms"), RateOutcome::Missed);
  EXPECT_EQ(outcome("latency_p50<50ms,latency_p99<50ms"), RateOutcome::Unknown);
  EXPECT_EQ(point.objectives[0].why_unknown, "");
  EXPECT_EQ(point.objectives[1].why_unknown, "p99 needs 368 counted answers, and there were 84");
  EXPECT_EQ(outcome("ttft_p50<50ms"), RateOutcome::Unknown);
  EXPECT_EQ(point.objectives[0].why_unknown, "no answer that is counted has this time");
  BenchResult result;
  result.points = {point, point};
  EXPECT_FALSE(result.meets_objectives());
  EXPECT_FALSE(result.misses_objectives());
  trial.summary.generator.is_in_time = false;
  EXPECT_EQ(outcome("latency_p99<50ms"), RateOutcome::Missed);
}

TEST(LoadName, SaysTheLoadInAFewWords) {
  EXPECT_EQ(load_name({.clients = 8}), "8 clients");
  EXPECT_EQ(load_name({.arrivals = ArrivalPlan{.law = ArrivalLaw::Constant, .rate_begin = 5000}}),
            "constant 5000/s");
  EXPECT_EQ(
      load_name({.arrivals = ArrivalPlan{.rate_begin = 10, .rate_end = 200, .ramp_seconds = 5}}),
      "poisson 10..200/s");
  EXPECT_EQ(load_name({.arrivals = ArrivalPlan{.law = ArrivalLaw::Trace, .trace = {1, 2}}}),
            "trace of 2 requests");
}

}  // namespace
}  // namespace muster
