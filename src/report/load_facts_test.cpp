#include "report/load_facts.h"

#include <gtest/gtest.h>

#include "report/report_fixture.h"

namespace muster {
namespace {

ReportLoad load_of_trials(std::vector<ReportTrial> trials) {
  return made_result("a.json", std::move(trials)).loads.front();
}

std::string first_sentence(const ReportResult& result) {
  const auto warnings = warnings_of(result, result.loads.front());
  return warnings.empty() ? "" : warnings.front().sentence;
}

// p99 is four times p50.
TEST(FigureOf, IsTheEstimateOfASingleTrial) {
  const auto load = load_of_trials({made_trial(500, 0.02)});
  const auto p99 = figure_of(load, "latency_p99");
  ASSERT_TRUE(p99);
  EXPECT_DOUBLE_EQ(p99->value, 0.08);
  EXPECT_TRUE(p99->low);
  EXPECT_FALSE(p99->high);
  EXPECT_FALSE(figure_of(load, "latency_p999"));
  EXPECT_DOUBLE_EQ(figure_of(load, "latency_mean")->value, 0.03);
  EXPECT_EQ(figure_of(load, "throughput")->value, 100);
  EXPECT_FALSE(figure_of(load, "ttft_p50"));
}

TEST(FigureOf, IsTheMeanOfSeveralTrials) {
  auto load = load_of_trials({made_trial(500, 0.02), made_trial(500, 0.03)});
  load.over_trials["latency_p99"] = {.value = 0.5, .low = 0.4, .high = 0.6};
  EXPECT_EQ(figure_of(load, "latency_p99")->value, 0.5);
  EXPECT_FALSE(figure_of(load, "latency_p50"));
}

TEST(FigureHtml, HasItsIntervalOrWhyThereIsNone) {
  const auto load = load_of_trials({made_trial(500, 0.02)});
  EXPECT_EQ(figure_html_of(load, "latency_p50"), "20.0<span class=\"ci\">19.0 to 21.0</span>");
  EXPECT_EQ(figure_html_of(load, "latency_p99"), "80.0<span class=\"ci\">76.0 to ?</span>");
  EXPECT_EQ(figure_html_of(load, "latency_p999"),
            "<span class=\"none\">not known: too few samples</span>");
  EXPECT_EQ(figure_html_of(load, "ttft_p50"), "<span class=\"none\">not measured</span>");
  EXPECT_EQ(figure_html_of(load, "throughput"), "100");
}

TEST(Warnings, NameALateGenerator) {
  auto result = made_result("a.json", {made_trial(500, 0.02)});
  EXPECT_EQ(first_sentence(result), "");
  result.loads.front().trials.front().is_valid = false;
  result.loads.front().trials.front().lateness_p99 = 0.0032;
  EXPECT_EQ(first_sentence(result),
            "INVALID: the load generator was late: 99th percentile of the send lag 3.20 ms, limit "
            "1.00 ms");
  EXPECT_EQ(verdict_of(result), first_sentence(result));
}

TEST(Warnings, NameWhatElseStandsAgainstAFigure) {
  auto result = made_result("a.json", {made_trial(500, 0.02)});
  auto& load = result.loads.front();
  load.trials.front().is_steady = false;
  load.trials.front().drift = 0.123;
  load.trials.front().answered = 498;
  load.objectives = {{.text = "latency_p99<50ms", .value = 0.08, .is_met = false},
                     {.text = "error_rate<1%", .value = 0.0, .is_met = true}};
  const auto warnings = warnings_of(result, load);
  ASSERT_EQ(warnings.size(), 3U);
  EXPECT_EQ(warnings[0].sentence,
            "NOT steady: after the warm-up the latency changed by +12 % from its beginning to its "
            "end");
  EXPECT_EQ(warnings[1].sentence, "MISSED: objective latency_p99<50ms (80.0 ms)");
  EXPECT_EQ(warnings[2].sentence, "FAILURES: 2 of 500 requests failed");
  EXPECT_FALSE(is_to_be_trusted(warnings));
  EXPECT_EQ(badges_html(warnings),
            "<span class=\"bad\">NOT steady</span>, <span class=\"bad\">MISSED</span>, <span "
            "class=\"bad\">FAILURES</span>");
  EXPECT_EQ(badges_html({}), "valid");
}

TEST(Warnings, NameARateThatMissesItsEnds) {
  auto result = made_result("a.json", {made_trial(500, 0.02)});
  auto& trial = result.loads.front().trials.front();
  trial.missed_at_end = 99;
  EXPECT_EQ(first_sentence(result), "");
  trial.missed_at_end = 100;
  EXPECT_EQ(first_sentence(result),
            "CUT SHORT: 100 of 500 answers came after the sending had ended: answers/s may be up "
            "to 20 % too low, whatever its interval says; let it send longer");
  trial.has_kept_up = false;
  EXPECT_EQ(first_sentence(result), "") << "they waited in a queue";
}

TEST(Warnings, WhatIsNotKnownIsNotMissed) {
  auto result = made_result("a.json", {made_trial(50, 0.02)});
  result.loads.front().objectives = {{.text = "latency_p99<50ms", .why_unknown = "too few"}};
  EXPECT_EQ(first_sentence(result), "NOT known: objective latency_p99<50ms (too few)");
  EXPECT_EQ(verdict_of(result), "objectives not known");
  result.loads.front().objectives.push_back(
      {.text = "error_rate<1%", .value = 0.5, .is_met = false});
  EXPECT_EQ(verdict_of(result), "objectives missed");
  result.peak = PeakResult{.rate = {}, .missed = 20, .unknown = 10};
  EXPECT_EQ(verdict_of(result),
            "no rate is known to keep the objectives: at 10.0/s they are not known");
}

TEST(Warnings, NameWhyAPointIsInvalid) {
  auto result = made_point("p", "8", "bf16", 100);
  result.figures.invalid_reason = "cuda:0 was away";
  EXPECT_EQ(first_sentence(result), "INVALID: cuda:0 was away");
}

TEST(Verdict, IsThatOfTheTerminal) {
  EXPECT_EQ(
      verdict_of(made_result("a.json", {made_trial(500, 0.02)})),
      "poisson 100/s: 100 answers/s, latency p50 20.0 ms (19.0 to 21.0), p99 80.0 ms (76.0 to "
      "?); 0 of 500 failed");
  auto trials = made_result("a.json", {made_trial(50, 0.02), made_trial(50, 0.02)});
  trials.loads.front().over_trials["throughput"] = {.value = 99.9, .low = 99.8, .high = 100};
  EXPECT_EQ(verdict_of(trials), "poisson 100/s: 99.9 answers/s (99.8 to 100), 2 trials");
  auto loads = made_result("a.json", {made_trial(500, 0.02)});
  loads.loads.push_back(load_of_trials({made_trial(500, 0.02)}));
  loads.loads.back().name = "8 clients";
  loads.loads.back().trials[0].figures.erase("throughput");
  EXPECT_TRUE(verdict_of(loads).starts_with("highest throughput: poisson 100/s: 100 answers/s"));
  loads.loads.front().trials[0].figures.erase("throughput");
  EXPECT_EQ(verdict_of(loads), "poisson 100/s: throughput was not measured");
  auto peak = made_result("a.json", {made_trial(50, 0.02)});
  peak.peak = PeakResult{.rate = 120, .missed = 130};
  EXPECT_EQ(verdict_of(peak), "peak: 120/s keeps the objectives, 130/s misses them");
}

}  // namespace
}  // namespace muster
