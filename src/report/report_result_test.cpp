#include "report/report_result.h"

#include <gtest/gtest.h>

#include "bench/result/result_json.h"

namespace muster {
namespace {

// 100 answers, 10 ms apart, of 20 ms; the first is slow. One request was never sent.
BenchTrial trial() {
  BenchTrial made{.seed = 1, .started_at = 5.5};
  for (int i = 0; i < 100; ++i) {
    const double at = 0.01 * i;
    const double end = at + (i == 0 ? 0.5 : 0.02);
    made.samples.samples.push_back({.intended = at,
                                    .ready = at,
                                    .started = at,
                                    .sent = at,
                                    .first_byte = end,
                                    .end = end,
                                    .status = 200,
                                    .outcome = SampleEnd::Answered});
  }
  made.samples.samples.push_back({.intended = 1});
  made.samples.stages = {{"status", std::vector<double>(101, 0.01)}};  // as a column is called
  made.samples.stages_left_out = 4;
  made.samples.sending_seconds = 1;
  made.samples.problems = {"<b>"};
  made.summary = summarize_trial(
      made.samples, {.is_open_loop = true, .offered_per_second = 100, .warm_up = {.seconds = 0.0}});
  made.summary.has_kept_up = false;  // as it is written, whatever the samples say
  return made;
}

std::string result_text(std::string run = {}) {
  BenchResult made{.api = "http",
                   .url = "http://h:1",
                   .model = "m",
                   .server = "s",
                   .command = {"muster", "bench"},
                   .settings = {},
                   .environment = {.cpu_model = "CPU", .build = "0.1"},
                   .points = {},
                   .order = {0}};
  made.points.push_back({.load = "poisson 100/s", .trials = {trial()}});
  made.run = std::move(run);
  return result_json(made);
}

TEST(ReadReportResult, HasWhatWasWritten) {
  const auto result = read_report_result(result_text(), "a.json");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->name, "a.json");
  EXPECT_EQ(result->url, "http://h:1");
  EXPECT_EQ(result->build, "0.1");
  EXPECT_FALSE(result->peak);
  EXPECT_FALSE(result->record);
  ASSERT_EQ(result->loads.size(), 1U);
  const auto& load = result->loads[0];
  EXPECT_EQ(load.name, "poisson 100/s");
  ASSERT_EQ(load.trials.size(), 1U);
  const auto& one = load.trials[0];
  EXPECT_EQ(one.started_at, 5.5);
  EXPECT_TRUE(one.is_valid);
  EXPECT_FALSE(one.has_kept_up);
  EXPECT_EQ(one.sent, 101U);
  EXPECT_EQ(one.answered, 100U);
  ASSERT_EQ(one.failed.size(), 1U);
  EXPECT_EQ(one.failed[0].first, "unsent");
  EXPECT_EQ(one.offered_per_second, 100);
  ASSERT_EQ(one.times.size(), 2U) << "no answer was a stream";
  EXPECT_EQ(one.times[0].title, "latency");
  const auto p50 = one.times[0].distribution.percentile(0.5);
  ASSERT_TRUE(p50);
  EXPECT_NEAR(p50->value, 0.02, 1e-9);
  EXPECT_FALSE(one.times[0].distribution.percentile(0.99)) << "368 samples are wanted";
  EXPECT_NEAR(one.times[0].distribution.most, 0.5, 1e-9);
  ASSERT_EQ(one.stages.size(), 1U);
  EXPECT_EQ(one.stages[0].name, "status");
  EXPECT_EQ(one.stage_doubts.too_long, 0U) << "10 ms of each answer of 20";
  EXPECT_EQ(one.stage_doubts.left_out, 4U);
  EXPECT_EQ(one.problems, std::vector<std::string>{"<b>"});
  ASSERT_EQ(one.samples.size(), 101U);
  EXPECT_NEAR(one.samples[0].latency.value_or(0), 0.5, 1e-9);
  EXPECT_FALSE(one.samples[100].is_answered);
  EXPECT_FALSE(one.samples[100].latency);
  EXPECT_EQ(result->figures.points[0].figures.count("throughput"), 1U);
}

TEST(ReadReportResult, HasTheRecordOfAPoint) {
  const auto result = read_report_result(
      result_text(
          R"({"point":"0123","valid":false,"invalid_reasons":["a device was away"],)"
          R"("config":{"batch_size":8,"device_ids":[0,"cpu:1"],"url":null},)"
          R"("summary":{"throughput_prompts_per_second":800,"steady":true},)"
          R"("energy":{"joules":null,"missing_reason":"no counter"},)"
          R"("cpu_stats":{"utilization_percent":50},"gpu_stats":{"gpu_0":{"name":"H200"}}})"),
      "p.json");
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_TRUE(result->record);
  const auto& record = *result->record;
  EXPECT_EQ(record.point, "0123");
  EXPECT_EQ(record.config.at("batch_size"), "8");
  EXPECT_EQ(record.config.at("device_ids"), "0,cpu:1");
  EXPECT_EQ(record.config.count("url"), 0U);
  EXPECT_EQ(record.summary.at("throughput_prompts_per_second"), 800);
  EXPECT_EQ(record.energy.count("joules"), 0U);
  EXPECT_EQ(record.energy_words.at("missing_reason"), "no counter");
  ASSERT_EQ(record.devices.size(), 2U);
  EXPECT_EQ(record.devices[1].words.at("name"), "H200");
  EXPECT_EQ(result->figures.invalid_reason, "a device was away");
}

// Whoever wrote it by hand gets a report without what is wrong, not a crash.
TEST(ReadReportResult, PassesOverMembersOfAnotherType) {
  const auto result = read_report_result(
      R"({"schema_version":1,"tool":5,"target":[],"environment":3,"points":[{"load":"x",)"
      R"("objectives":{},"over_trials":7,"trials":[{"valid":true,"figures":{"throughput":1e300},)"
      R"("requests":{"failed":9,"sent":-1},"server_stages":5,"latency":{"mean":{"value":"1"}},)"
      R"("samples":{"intended_ns":[1,null,"x",-5,1e18],"latency_ns":[1],"outcome":[1]}}]}]})",
      "x.json");
  ASSERT_TRUE(result) << result.error().message;
  const auto& one = result->loads.at(0).trials.at(0);
  EXPECT_TRUE(one.figures.empty());
  EXPECT_TRUE(one.times.empty());
  EXPECT_TRUE(one.failed.empty());
  EXPECT_TRUE(one.stages.empty());
  EXPECT_FALSE(one.sent);
  ASSERT_EQ(one.samples.size(), 1U);
  EXPECT_FALSE(one.samples[0].is_answered);
}

TEST(ReadReportResult, RefusesWhatIsNoResult) {
  const auto none = read_report_result("{}", "x.json");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "x.json: this is no result of muster bench: it has no schema_version or no points");
}

}  // namespace
}  // namespace muster
