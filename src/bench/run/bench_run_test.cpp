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
  auto run = options({{.arrivals = ArrivalPlan{.rate_begin = 0.04}, .requests_most = 1}});
  run.objectives = *parse_objectives("latency_p50<0s");
  run.finds_peak = true;
  BenchResult result;
  ASSERT_TRUE(run_bench(run, result));
  ASSERT_TRUE(result.peak);
  EXPECT_FALSE(result.peak->rate);
  EXPECT_EQ(result.peak->missed, 0.01);
  EXPECT_EQ(result.points.size(), 3U);
  EXPECT_EQ(result.points[1].load, "poisson 0.02/s");
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
