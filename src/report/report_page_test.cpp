#include "report/report_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/report_fixture.h"

namespace muster {
namespace {

std::string page_of(std::vector<ReportResult> results) {
  ReportInput input{.title = {}, .build = "0.1", .results = std::move(results)};
  const auto page = report_page(input);
  EXPECT_TRUE(page) << page.error().message;
  return page ? *page : std::string();
}

bool has(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

// The values of an attribute, in their order.
std::vector<std::string> values_of(const std::string& page, const std::string& attribute) {
  std::vector<std::string> values;
  const auto mark = " " + attribute + "=\"";
  for (auto at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    const auto begin = at + mark.size();
    values.push_back(page.substr(begin, page.find('"', begin) - begin));
  }
  return values;
}

TEST(ReportPage, IsOneFileThatFetchesNothing) {
  const auto page = page_of({made_result("a.json", {made_trial(500, 0.02)})});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>\n"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_TRUE(is_report_head(page));
  EXPECT_FALSE(is_report_head("<!DOCTYPE html>\n<html>"));
  EXPECT_TRUE(has(page, "content=\"default-src 'none'; style-src 'unsafe-inline'\""));
  for (const auto* part : {"<script", "<link", "<img", "<iframe", "src=", "href=", "url(",
                           "@import", "onload", "http:", "https:"}) {
    EXPECT_FALSE(has(page, part)) << part;
  }
}

// A name that a server, a file or a command line may choose, in every place that has one.
TEST(ReportPage, EscapesHostileNames) {
  const std::string hostile = "\"><script>alert('x')</script><img src=x onerror=alert(1)>";
  auto result = made_point(hostile, "8", hostile, 100);
  result.name = result.api = result.url = result.model = result.server = result.build = hostile;
  result.command = {hostile};
  result.environment = {{hostile, hostile}};
  result.is_compared = true;
  result.record->config[hostile] = hostile;
  result.record->energy_words["missing_reason"] = hostile;
  result.record->energy_words["method"] = hostile;
  result.record->devices = {{.name = hostile, .numbers = {}, .words = {{"name", hostile}}}};
  result.figures.invalid_reason = hostile;
  auto& load = result.loads[0];
  load.name = result.figures.points[0].load = hostile;
  load.objectives = {{.text = hostile, .value = 1.0, .is_met = false}};
  auto& trial = load.trials[0];
  trial.failed = {{hostile, 3}};
  trial.lateness = trial.token_source = hostile;
  trial.parts = TimeParts{};
  trial.stages = {{hostile, 0.1}};
  trial.problems = {hostile};
  ReportInput input{.title = hostile, .build = hostile, .results = {result, result}};
  input.results[1].record->config["batch_size"] = "9";
  input.recordings.push_back({.name = hostile,
                              .point = hostile,
                              .begin = 1'700'000'000,
                              .end = 1'700'000'009,
                              .lines = {{.device = hostile,
                                         .model = hostile,
                                         .points = {{1'700'000'000, 5}, {1'700'000'001, 6}}}}});
  const auto page = report_page(input);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_FALSE(has(*page, "<script"));
  EXPECT_FALSE(has(*page, "<img"));
  EXPECT_TRUE(has(*page, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
}

// Worked out of the fixture: p50 20 ms, mean 30, p90 40, p95 60, p99 80, most 180.
TEST(ReportPage, HasEveryFigureWithItsInterval) {
  const auto page = page_of({made_result("a.json", {made_trial(500, 0.02)})});
  for (const auto* cell : {"<td>30.0<span class=\"ci\">28.0 to 32.0</span></td>",
                           "<td>20.0<span class=\"ci\">19.0 to 21.0</span></td>",
                           "<td>40.0<span class=\"ci\">38.0 to 42.0</span></td>",
                           "<td>60.0<span class=\"ci\">57.0 to 63.0</span></td>",
                           "<td>80.0<span class=\"ci\">76.0 to ?</span></td>",
                           "<td><span class=\"none\">too few samples</span></td>", "<td>180</td>",
                           "500 sent, 500 answered; 100/s answered",
                           "99th percentile of the send lag 0.200 ms (limit 1.00 ms)"}) {
    EXPECT_TRUE(has(page, cell)) << cell;
  }
}

// 20 ms of an answer of 10: nothing is left for elsewhere.
TEST(ReportPage, SaysThatStagesCannotBeRight) {
  auto trial = made_trial(500, 0.01);
  trial.parts = TimeParts{.first_byte_wait = 0.01};
  trial.stages = {{"work", 0.02}};
  trial.stage_doubts = {.too_long = 3, .left_out = 0};
  const auto page = page_of({made_result("a.json", {trial})});
  EXPECT_TRUE(has(page, "<li>in 3 of 500 answers the server&#39;s stages are longer than it had"));
  EXPECT_TRUE(has(page, "of which the server reports 20.0 work"));
  EXPECT_FALSE(has(page, "elsewhere"));
  EXPECT_FALSE(has(page_of({made_result("a.json", {made_trial(500, 0.01)})}), "<li>in "));
}

TEST(ReportPage, ShowsTrialsByTheirMeansAndEachByItself) {
  auto result = made_result("a.json", {made_trial(500, 0.02), made_trial(500, 0.04)});
  result.loads[0].over_trials["latency_p50"] = {.value = 0.03, .low = 0.01, .high = 0.05};
  const auto page = page_of({result});
  EXPECT_TRUE(has(page,
                  "<th scope=\"row\">latency p50 (ms)</th><td>30.0</td><td>10.0</td>"
                  "<td>50.0</td>"));
  EXPECT_TRUE(has(page, "<td>40.0<span class=\"ci\">38.0 to 42.0</span></td>"));
  EXPECT_TRUE(has(page, "trial 2 (500)"));
}

TEST(ReportPage, SaysFirstWhatIsNotToBeTrusted) {
  auto result = made_result("a.json", {made_trial(500, 0.02)});
  result.loads[0].trials[0].is_valid = false;
  result.loads[0].trials[0].is_steady = false;
  result.loads[0].trials[0].drift = 0.5;
  const auto page = page_of({result});
  EXPECT_TRUE(has(page, "<p class=\"alert\"><bdi>a.json</bdi>: INVALID: the load generator"));
  EXPECT_TRUE(has(page,
                  "<p class=\"alert\"><bdi>poisson 100/s</bdi>: NOT steady: after the warm-up "
                  "the latency changed by +50 %"));
  EXPECT_TRUE(
      has(page, "<span class=\"bad\">INVALID</span>, <span class=\"bad\">NOT steady</span>"));
}

TEST(ReportPage, SaysWhyWhatIsMissingWasNotMeasured) {
  const auto page = page_of({made_result("a.json", {made_trial(500, 0.02)})});
  EXPECT_TRUE(has(page, "Power and energy were not measured, because this command watches no"));
  const auto points = page_of({made_point("p", "8", "bf16", 100)});
  EXPECT_TRUE(has(points, "not measured, because metrics.enabled is false"));
}

// A is twice as fast in every trial; trials differ by a thousandth.
TEST(ReportPage, ComparesResultsSideBySide) {
  const auto side = [](const std::string& name, double latency) {
    std::vector<ReportTrial> trials{made_trial(50, latency), made_trial(50, 1.001 * latency)};
    for (auto& trial : trials) trial.figures["latency_p50"] = trial.samples[0].latency.value_or(0);
    auto result = made_result(name, std::move(trials));
    result.loads[0].over_trials["latency_p50"] = {
        .value = latency, .low = latency, .high = latency};
    return result;
  };
  const auto page = page_of({side("a.json", 0.02), side("b.json", 0.04)});
  EXPECT_TRUE(has(page, "<th scope=\"col\"><bdi>a.json</bdi></th><th scope=\"col\"><bdi>b.json"));
  EXPECT_TRUE(has(page, "<td><span class=\"bad\">WORSE by 100.0 %</span></td>"));
  EXPECT_TRUE(has(page, "right at 99 %"));
  EXPECT_TRUE(has(page, "<h2>Latencies</h2>"));
}

// The throughputs are the same in all trials, and the files do not say of how many answers.
TEST(ReportPage, RatiosFarFromOneAreBounds) {
  const std::vector<ReportTrial> trials{made_trial(50, 0.02), made_trial(50, 0.02)};
  const auto page = page_of({made_result("a.json", trials), made_result("b.json", trials)});
  EXPECT_TRUE(has(page, "<td>1.000</td><td>&lt;0.001</td><td>&gt;1000</td><td>no difference</td>"));
}

TEST(ReportPage, GivesNoVerdictOfOneTrial) {
  const auto page = page_of({made_result("a.json", {made_trial(50, 0.02)}),
                             made_result("b.json", {made_trial(50, 0.04)})});
  EXPECT_TRUE(has(page, "Not compared, because no load has two trials on both sides."));
  EXPECT_FALSE(has(page, "WORSE"));
}

TEST(ReportPage, DrawsTheSweepOfPoints) {
  const auto page =
      page_of({made_point("p1", "1", "bf16", 100), made_point("p2", "8", "bf16", 300)});
  EXPECT_TRUE(has(page, "<title id=\"sweep0-0t-t\">Throughput by batch_size</title>"));
  EXPECT_TRUE(has(page, "<title id=\"sweep0-0l-t\">Latency p99 by batch_size</title>"));
  EXPECT_TRUE(has(page, "highest throughput: 300 prompts/s, <bdi>p2</bdi>"));
  EXPECT_FALSE(has(page, "<h2>Side by side</h2>")) << "points of a folder are a sweep";
}

// Of two samples a 99th percentile is not known, and a plot of it would be empty.
TEST(ReportPage, DrawsTheFarthestPercentileThatSomePointHas) {
  std::vector<ReportResult> points{made_point("p1", "1", "bf16", 100),
                                   made_point("p8", "8", "bf16", 300)};
  for (auto& point : points) {
    auto& percentiles = point.loads[0].trials[0].times[0].distribution.percentiles;
    for (auto& one : percentiles) {
      if (one.share > 0.95) one.estimate = std::nullopt;
    }
  }
  EXPECT_TRUE(has(page_of(points), "<title id=\"sweep0-0l-t\">Latency p95 by batch_size</title>"));
  for (auto& point : points) {
    point.loads[0].trials[0].times[0].distribution.percentiles[2].estimate = std::nullopt;
  }
  EXPECT_TRUE(has(page_of(points), "<title id=\"sweep0-0l-t\">Latency p50 by batch_size</title>"));
}

TEST(ReportPage, DrawsPowerWithThePhases) {
  auto trial = made_trial(500, 0.02);
  trial.warm_up_seconds = 1;
  trial.counted_seconds = 4;
  ReportInput input{.title = "t", .build = "0.1", .results = {made_result("a.json", {trial})}};
  input.recordings.push_back(
      {.name = "w.jsonl",
       .point = "w",
       .begin = 1'700'000'000,
       .end = 1'700'000'009,
       .lines = {{.device = "cuda:0",
                  .model = "H200",
                  // One reading in the warm-up, two that count.
                  .points = {{1'700'000'000.5, 90}, {1'700'000'002, 300}, {1'700'000'003, 320}}}}});
  const auto page = report_page(input);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_TRUE(has(*page, "<td>2</td><td>300</td><td>310</td><td>320</td>"));
  EXPECT_TRUE(has(*page, "<rect class=\"warm\""));
  EXPECT_TRUE(has(*page, "<rect class=\"counted\""));
  EXPECT_FALSE(has(*page, "not measured, because this command"));
}

// One reading between two gaps is a line without length, which is drawn as a dot.
TEST(ReportPage, DrawsALonelyReading) {
  ReportInput input{
      .title = "t", .build = "0.1", .results = {made_result("a.json", {made_trial(500, 0.02)})}};
  input.recordings.push_back({.name = "w.jsonl",
                              .point = "w",
                              .begin = 1'700'000'000,
                              .end = 1'700'000'009,
                              .lines = {{.device = "cuda:0",
                                         .model = "H200",
                                         .points = {{1'700'000'002, 300}, {1'700'000'003, NAN}}}}});
  const auto page = report_page(input);
  ASSERT_TRUE(page) << page.error().message;
  const auto paths = values_of(*page, "d");
  EXPECT_TRUE(std::ranges::any_of(paths, [](const std::string& path) {
    return std::ranges::count(path, 'M') == 1 && path.ends_with("h0");
  }));
}

TEST(ReportPage, GivesEachPlotATitleAndADescriptionOfItsOwn) {
  const auto page = page_of({made_result("a.json", {made_trial(500, 0.02)}),
                             made_result("b.json", {made_trial(500, 0.02)})});
  const auto ids = values_of(page, "id");
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), ids.size());
  const auto references = values_of(page, "aria-labelledby");
  EXPECT_EQ(references.size(), 5U) << "two of each result, and one of both";
  EXPECT_EQ(ids.size(), 2 * references.size());
}

// The slowest of a million is drawn as the last mark of its line and named in words.
TEST(ReportPage, OfAMillionSamplesStaysSmallAndShowsTheSlowest) {
  auto trial = made_trial(1'000'000, 0.02);
  trial.samples[654'321].latency = 5.0;
  const auto page = page_of({made_result("a.json", {std::move(trial)})});
  EXPECT_LE(page.size(), kReportBytesMost);
  EXPECT_TRUE(has(page, "answers (1,000,000)"));
  EXPECT_TRUE(has(page, "the largest latency is 5000 ms"));
  EXPECT_TRUE(has(page, "1,000,000 answers, from 20.0 to 5000 ms"));
}

TEST(ReportPage, LeavesPlotsOutBeforeItGetsTooLong) {
  std::vector<ReportResult> results;
  for (int i = 0; i < 200; ++i) {
    auto result = made_result("result" + std::to_string(i) + ".json", {made_trial(1000, 0.02)});
    for (std::size_t k = 0; k < 1000; ++k) {
      result.loads[0].trials[0].samples[k].latency = 0.02 + 0.001 * static_cast<double>(k % 37);
    }
    result.is_compared = false;
    results.push_back(std::move(result));
  }
  const auto page = page_of(std::move(results));
  EXPECT_LE(page.size(), kReportBytesMost);
  EXPECT_TRUE(has(page, "more sections are left out, because a report takes at most 500 KB"));
  for (const auto* name : {"result0.json", "result199.json"}) {
    EXPECT_TRUE(has(page, "<tr><th scope=\"row\"><bdi>" + std::string(name) + "</bdi></th>"))
        << name;
  }
}

TEST(ReportPage, RefusesMoreLoadsThanItsTablesHold) {
  auto result = made_result("a.json", {made_trial(1, 0.02)});
  const auto load = result.loads.front();
  result.loads.resize(5'000, load);
  ReportInput input{.title = "t", .build = "0.1", .results = {result}};
  const auto page = report_page(input);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().kind, ErrorKind::ResourceExhausted);
}

}  // namespace
}  // namespace muster
