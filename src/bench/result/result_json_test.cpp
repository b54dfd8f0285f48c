#include "bench/result/result_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/result/result_diff.h"

namespace muster {
namespace {

using Json = nlohmann::json;

BenchTrial trial(double latency, std::size_t count) {
  BenchTrial made{.seed = 3, .started_at = 1.5};
  for (std::size_t i = 0; i < count; ++i) {
    const double at = 0.01 * static_cast<double>(i);
    made.samples.samples.push_back({.intended = at,
                                    .ready = at,
                                    .started = at,
                                    .sent = at,
                                    .first_byte = at + latency,
                                    .end = at + latency,
                                    .status = 200,
                                    .outcome = SampleEnd::Answered});
  }
  made.samples.samples.push_back({.intended = 1, .end = 2});
  made.samples.stages = {{"queue", std::vector<double>(count + 1, kNever)}};
  made.samples.sending_seconds = 1;
  made.summary = summarize_trial(made.samples, {.is_open_loop = true, .warm_up = {.seconds = 0.0}});
  return made;
}

BenchResult result(double latency) {
  BenchResult made{.api = "embeddings",
                   .url = "http://127.0.0.1:8000",
                   .model = "m",
                   .server = "",
                   .command = {"muster", "bench"},
                   .settings = {{"--rate", "100"}},
                   .environment = {.cpu_model = "CPU", .build = "0.1"},
                   .points = {},
                   .order = {0, 0}};
  made.points.push_back(
      {.load = "poisson 100/s", .trials = {trial(latency, 80), trial(1.01 * latency, 80)}});
  return made;
}

TEST(ResultJson, HoldsFiguresAndSamples) {
  const auto json = Json::parse(result_json(result(0.02)));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["target"]["server"], nullptr);
  EXPECT_EQ(json["order"], (Json{0, 0}));
  const auto& point = json["points"][0];
  EXPECT_EQ(point["load"], "poisson 100/s");
  const auto& first = point["trials"][0];
  EXPECT_EQ(first["valid"], true);
  EXPECT_EQ(first["requests"]["failed"]["unsent"], 1);
  EXPECT_EQ(first["requests"]["warm_up"], 0);
  EXPECT_NEAR(first["latency"]["p50"]["value"].get<double>(), 0.02, 1e-9);
  EXPECT_EQ(first["latency"]["p99"], nullptr);
  EXPECT_EQ(first["first_token"], nullptr);
  EXPECT_EQ(first["server_stage_doubts"], (Json{{"too_long", 0}, {"left_out", 0}}));
  EXPECT_EQ(first["kept_up"], true);
  const auto& samples = first["samples"];
  EXPECT_EQ(samples["intended_ns"].size(), 81U);
  EXPECT_EQ(samples["latency_ns"][0], 20'000'000);
  EXPECT_EQ(samples["outcome"][80], "unsent");
  EXPECT_EQ(samples["sending_ns"][80], nullptr);
  EXPECT_EQ(samples["server_stages_ns"]["queue"][0], nullptr);
  EXPECT_NEAR(point["over_trials"]["latency_p50"]["mean"].get<double>(), 0.0201, 1e-9);
}

// One answer, which came a second after the sending had ended: no rate of it was measured.
TEST(ResultJson, WhatWasNotMeasuredIsNull) {
  auto made = result(0.02);
  auto& point = made.points[0];
  point.trials.resize(1);
  auto& one = point.trials[0];
  one.samples.samples.resize(1);
  one.samples.samples[0].end = 2;
  one.samples.samples[0].input_tokens = 7;
  one.samples.stages.clear();
  one.summary = summarize_trial(one.samples, {.warm_up = {.seconds = 0.0}});
  one.summary.has_kept_up = false;
  point.objectives = judge_point(*parse_objectives("throughput>0.1,latency_p50<1s"), point);
  made.peak = PeakResult{.rate = {}, .missed = {}, .unknown = 10};
  const auto json = Json::parse(result_json(made));
  const auto& trial = json["points"][0]["trials"][0];
  EXPECT_EQ(trial["per_second"]["answered"], nullptr);
  EXPECT_EQ(trial["requests"]["missed_at_end"], 1);
  EXPECT_EQ(trial["kept_up"], false);
  EXPECT_EQ(trial["tokens"], (Json{{"input", 7},
                                   {"output", 0},
                                   {"input_per_second", nullptr},
                                   {"output_per_second", nullptr},
                                   {"output_pieces", 0},
                                   {"output_source", nullptr}}));
  EXPECT_FALSE(trial["figures"].contains("throughput"));
  EXPECT_FALSE(json["points"][0]["over_trials"].contains("throughput"));
  EXPECT_EQ(
      json["points"][0]["objectives"][0],
      (Json{{"objective", "throughput>0.1"},
            {"value", nullptr},
            {"met", false},
            {"why_unknown", "no answer ended while requests were sent: let it send longer"}}));
  EXPECT_EQ(json["points"][0]["objectives"][1]["why_unknown"],
            "p50 needs 6 counted answers, and there were 1");
  EXPECT_EQ(json["peak"], (Json{{"rate", nullptr}, {"missed", nullptr}, {"unknown", 10.0}}));
}

TEST(ResultJson, ALoadOfOneMomentSaysWhyItHasNoRate) {
  auto made = result(0.02);
  auto& point = made.points[0];
  for (auto& one : point.trials) one.summary.counted_seconds = 0;
  point.objectives = judge_point(*parse_objectives("throughput>0.1"), point);
  EXPECT_EQ(point.objectives.at(0).why_unknown, "all requests that count were sent at one moment");
}

TEST(ResultJson, BytesThatAreNoUtf8AreReplaced) {
  auto bad = result(0.02);
  bad.server = "\xff";
  EXPECT_TRUE(Json::accept(result_json(bad)));
}

TEST(ReadResultFigures, ReadsWhatWasWritten) {
  const auto figures = read_result_figures(result_json(result(0.02)), "a.json");
  ASSERT_TRUE(figures) << figures.error().message;
  ASSERT_EQ(figures->points.size(), 1U);
  const auto& point = figures->points[0];
  EXPECT_EQ(point.trial_count, 2U);
  EXPECT_TRUE(point.is_valid);
  EXPECT_NEAR(point.figures.at("latency_p50")[1], 0.0202, 1e-9);
}

// Its requests were in time, and a device was not there: no verdict comes of it.
TEST(ReadResultFigures, KnowsThatAPointOfARunIsNotValid) {
  auto made = result(0.02);
  const auto read = [&made](const std::string& run) {
    made.run = run;
    const auto figures = read_result_figures(result_json(made), "a.json");
    EXPECT_TRUE(figures) << figures.error().message;
    return figures ? *figures : ResultFigures();
  };
  EXPECT_TRUE(read(R"({"valid":true,"invalid_reasons":[]})").points[0].is_valid);
  EXPECT_TRUE(read("[1]").points[0].is_valid);
  EXPECT_EQ(read(R"({"valid":false,"invalid_reasons":3})").invalid_reason, "it says no reason");
  const auto lost = read(R"({"valid":false,"invalid_reasons":["cpu:0 is given up","b",4]})");
  EXPECT_FALSE(lost.points[0].is_valid);
  const auto compared = compare_results(lost, read("{}"), {});
  ASSERT_TRUE(compared) << compared.error().message;
  EXPECT_TRUE(compared->is_invalid());
  EXPECT_EQ(compared->notes, std::vector<std::string>{"A is not valid: cpu:0 is given up; b"});
}

TEST(ReadResultFigures, NamesTheFirstFigureThatNobodyHasMeasured) {
  const auto damage = [](const std::string& value) {
    const auto read =
        read_result_figures(R"({"schema_version":1,"points":[{"load":"1 client","trials":[)"
                            R"({"valid":true,"figures":{"throughput":10}},)"
                            R"({"valid":true,"figures":{"throughput":)" +
                                value + "}}]}]}",
                            "a.json");
    EXPECT_TRUE(read) << read.error().message;
    return read ? read->damage : std::string();
  };
  const std::string rule = ": a figure is a number from 0 to 1e15";
  EXPECT_EQ(damage("\"x\""), "a.json: throughput of trial 2 of 1 client is \"x\"" + rule);
  EXPECT_EQ(damage("-1"), "a.json: throughput of trial 2 of 1 client is -1" + rule);
  EXPECT_EQ(damage("null"), "a.json: throughput of trial 2 of 1 client is null" + rule);
  EXPECT_EQ(damage("1e308"), "a.json: throughput of trial 2 of 1 client is 1e+308" + rule);
  EXPECT_EQ(damage("0"), "");
}

// Deeper than a stack: copies and texts of such a value call themselves.
TEST(ReadResultFigures, LeavesOutWhatIsTooDeep) {
  constexpr std::size_t kLevels = 500'000;
  const auto figures = read_result_figures(
      R"({"schema_version":1,"environment":{"cpu":"c","deep":)" + std::string(kLevels, '[') +
          std::string(kLevels, ']') + R"(},"points":[]})",
      "a.json");
  ASSERT_TRUE(figures) << figures.error().message;
  EXPECT_NE(figures->environment.find(R"("cpu":"c")"), std::string::npos);
}

TEST(ReadResultFigures, SaysWhatIsWrong) {
  const auto message = [](std::string_view text) {
    return read_result_figures(text, "a.json").error().message;
  };
  EXPECT_EQ(message("nothing"), "a.json: this is no result of muster bench: it is no JSON object");
  EXPECT_EQ(message("{}"),
            "a.json: this is no result of muster bench: it has no schema_version or no points");
  EXPECT_EQ(message(R"({"schema_version":9,"points":[]})"),
            "a.json: this is no result of muster bench: its schema_version is 9, not 1");
  EXPECT_EQ(message(R"({"schema_version":1,"points":[{}]})"),
            "a.json: this is no result of muster bench: a point has no load or no trials");
  EXPECT_EQ(message(R"({"schema_version":1,"points":[{"load":"x","trials":[{}]}]})"),
            "a.json: this is no result of muster bench: a trial has no figures");
}

ResultFigures figures(const std::string& load, const std::string& figure,
                      std::vector<double> values) {
  ResultFigures::Point point{.load = load, .trial_count = values.size()};
  point.figures[figure] = std::move(values);
  return {.environment = "e", .points = {point}};
}

TEST(CompareResults, KnowsWhichWayIsWorse) {
  const auto low = figures("1 client", "throughput", {100, 101, 99});
  const auto high = figures("1 client", "throughput", {200, 202, 198});
  const auto slower = compare_results(high, low, {});
  ASSERT_TRUE(slower) << slower.error().message;
  EXPECT_TRUE(slower->has_worse());
  const auto faster = compare_results(low, high, {});
  EXPECT_FALSE(faster->has_worse());
  EXPECT_EQ(faster->figures[0].comparison.difference, Difference::Higher);
  EXPECT_TRUE(compare_results(figures("1 client", "latency_p50", {100, 101, 99}),
                              figures("1 client", "latency_p50", {200, 202, 198}), {})
                  ->has_worse());
}

// A result of two trials as a file: its rate, and the seconds that were counted.
ResultFigures read_rates(const std::string& rate, const std::string& seconds) {
  const auto one = R"({"valid":true,"counted_seconds":)" + seconds +
                   R"(,"figures":{"throughput":)" + rate + "}}";
  const auto read = read_result_figures(
      R"({"schema_version":1,"points":[{"load":"x","trials":[)" + one + "," + one + "]}]}",
      "a.json");
  EXPECT_TRUE(read) << read.error().message;
  return read ? *read : ResultFigures();
}

// 32 answers against 30 may be one and the same server; 1,600 against 1,500 are not.
TEST(CompareResults, EqualTrialsAreNoFinerThanOneAnswer) {
  EXPECT_EQ(read_rates("16", "2").points.at(0).answers, (std::vector<double>{32, 32}));
  const auto few = compare_results(read_rates("16", "2"), read_rates("15", "2"), {});
  ASSERT_TRUE(few) << few.error().message;
  EXPECT_EQ(few->figures.at(0).comparison.difference, Difference::None);
  EXPECT_FALSE(few->has_worse());
  const auto many = compare_results(read_rates("16", "100"), read_rates("15", "100"), {});
  ASSERT_TRUE(many) << many.error().message;
  EXPECT_TRUE(many->has_worse());
  // Without the seconds nothing is known of how sure equal trials are.
  EXPECT_TRUE(read_rates("16", "null").points.at(0).answers.empty());
  EXPECT_FALSE(
      compare_results(read_rates("16", "null"), read_rates("15", "null"), {})->has_worse());
}

// Replies that are longer than their trial of ten seconds: 130 pieces of one token come in time.
BenchTrial long_reply(double tokens_per_second) {
  BenchTrial made;
  made.summary.counted_seconds = 10;
  made.summary.sent = made.summary.answered = made.summary.missed_at_end = 1;
  made.summary.tokens = TokenCounts{.output = 500,
                                    .output_per_second = tokens_per_second,
                                    .output_pieces = 130,
                                    .output_source = "usage"};
  return made;
}

// One piece of 130 is 0.1 tokens/s; t of four degrees at 95 % is 2.776: 0.124 to both sides.
TEST(FigureMean, TokensAreNoFinerThanAPieceAndNoCoarser) {
  BenchPoint point{.load = "1 client", .trials = std::vector<BenchTrial>(5, long_reply(13))};
  const auto mean = figure_mean(point, "token_throughput", std::vector<double>(5, 13.0));
  EXPECT_NEAR(mean.low, 13 - 0.124, 1e-3);
  EXPECT_NEAR(mean.high, 13 + 0.124, 1e-3);
}

// One piece apart, and two trials a side that are as alike as they can be.
TEST(CompareResults, TokensAreNoFinerThanAPiece) {
  const auto read = [](double first, double second) {
    auto made = result(0.02);
    made.points[0].trials = {long_reply(first), long_reply(second)};
    const auto figures = read_result_figures(result_json(made), "a.json");
    EXPECT_TRUE(figures) << figures.error().message;
    return figures ? *figures : ResultFigures();
  };
  const auto a = read(13.1, 13.1001);
  EXPECT_EQ(a.points.at(0).pieces, (std::vector<double>{130, 130}));
  EXPECT_TRUE(a.points.at(0).answers.empty()) << "there is no rate of answers";
  const auto compared = compare_results(a, read(13.0, 13.0001), {});
  ASSERT_TRUE(compared) << compared.error().message;
  ASSERT_EQ(compared->figures.size(), 1U);
  EXPECT_EQ(compared->figures[0].figure, "token_throughput");
  EXPECT_EQ(compared->figures[0].comparison.difference, Difference::None);
}

TEST(CompareResults, NotesWhatLimitsIt) {
  auto a = figures("1 client", "throughput", {100, 101});
  auto b = figures("1 client", "throughput", {100, 101});
  a.points.push_back({.load = "8 clients", .trial_count = 2});
  b.points[0].is_valid = false;
  b.environment = "other";
  const auto result = compare_results(a, b, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->notes, (std::vector<std::string>{"the environments differ",
                                                     "B: a trial of 1 client is invalid",
                                                     "only A has 8 clients"}));
}

// Late sends make latencies of nothing: they show no difference, and no lack of one.
TEST(CompareResults, GivesNoVerdictOfInvalidTrials) {
  const auto low = figures("1 client", "throughput", {100, 101, 99});
  auto high = figures("1 client", "throughput", {200, 202, 198});
  high.points[0].is_valid = false;
  const auto result = compare_results(high, low, {});
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->figures[0].is_valid);
  EXPECT_FALSE(result->has_worse());
  EXPECT_TRUE(result->is_invalid());
  EXPECT_FALSE(compare_results(low, low, {})->is_invalid());
}

// Its times are those of a tenth of the requests, and a load that it does not answer has none.
TEST(CompareResults, SaysWhatOneSideDidNotAnswer) {
  auto a = figures("1 client", "latency_p50", {0.5, 0.51});
  a.points[0].figures["error_rate"] = {0, 0};
  a.points[0].figures["ttft_p50"] = {0.1, 0.1};
  auto b = figures("1 client", "latency_p50", {0.1, 0.11});
  b.points[0].figures["error_rate"] = {0.9, 0.9};
  const auto result = compare_results(a, b, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->notes,
            (std::vector<std::string>{"1 client: 0 % of the requests failed in A and 90 % in B",
                                      "1 client: ttft_p50 is not compared: not each trial of B "
                                      "has it"}));
}

TEST(CompareResults, ALoadThatBDoesNotAnswerIsWorse) {
  const auto some = figures("512 clients", "throughput", {100, 101});
  const auto none = figures("512 clients", "throughput", {0, 0});
  const auto lost = compare_results(some, none, {});
  ASSERT_TRUE(lost) << lost.error().message;
  ASSERT_EQ(lost->figures.size(), 1U);
  EXPECT_TRUE(lost->has_worse());
  EXPECT_EQ(lost->figures[0].comparison.difference, Difference::Lower);
  EXPECT_DOUBLE_EQ(lost->figures[0].a, 100.5);
  // One trial of two says nothing yet, and the other way there is no ratio.
  EXPECT_FALSE(compare_results(some, figures("512 clients", "throughput", {100, 0}), {}));
  EXPECT_FALSE(compare_results(none, some, {}));
  EXPECT_FALSE(
      compare_results(figures("x", "throughput", {1}), figures("x", "throughput", {0}), {}));
}

// Two trials as a file, whose only answer came after the ten seconds of sending.
ResultFigures read_late_answers(const std::string& missed = "1") {
  const auto one = R"({"valid":true,"counted_seconds":10,"figures":{"error_rate":0},)"
                   R"("requests":{"sent":1,"answered":1,"missed_at_end":)" +
                   missed + "}}";
  const auto read = read_result_figures(
      R"({"schema_version":1,"points":[{"load":"x","trials":[)" + one + "," + one + "]}]}",
      "b.json");
  EXPECT_TRUE(read) << read.error().message;
  return read ? *read : ResultFigures();
}

// A answers 100 a trial of ten seconds: 10/s. B needs 30 s an answer, and is below 0.1/s.
// By one answer of 100 and t of one degree at 99 %, 63.66, A does at least
// 10 - 63.66 * 0.1 / sqrt(2) = 5.5/s.
TEST(CompareResults, ALoadThatBAnswersTooLateIsWorse) {
  const auto b = read_late_answers();
  EXPECT_EQ(b.points.at(0).rate_bounds, (std::vector<double>{0.1, 0.1}));
  const auto lost = compare_results(read_rates("10", "10"), b, {});
  ASSERT_TRUE(lost) << lost.error().message;
  ASSERT_EQ(lost->figures.size(), 1U);
  const auto& one = lost->figures[0];
  EXPECT_EQ(one.figure, "throughput");
  EXPECT_TRUE(one.is_worse);
  EXPECT_DOUBLE_EQ(one.a, 10);
  EXPECT_EQ(one.b, 0);
  EXPECT_NEAR(one.comparison.high, 0.1 / 5.4986, 1e-4);
  EXPECT_EQ(lost->notes, std::vector<std::string>{"x: all answers of B came after the sending had "
                                                  "ended: its throughput is below one answer a "
                                                  "trial"});
}

// Its one answer came just before the end, and those of B just behind it.
TEST(CompareResults, OneAnswerATrialIsNoBetterThanALateOne) {
  const auto few = compare_results(read_rates("0.1", "10"), read_late_answers(), {});
  ASSERT_TRUE(few) << few.error().message;
  EXPECT_FALSE(few->has_worse());
  EXPECT_EQ(few->figures.at(0).comparison.difference, Difference::None);
  // Nothing says why there is no rate.
  EXPECT_TRUE(read_late_answers("0").points.at(0).rate_bounds.empty());
  EXPECT_FALSE(compare_results(read_rates("10", "10"), read_late_answers("0"), {}));
}

// As fast as A, because what it refuses costs it nothing: 0 of 300 against 90 of 300.
TEST(CompareResults, FailuresAreAFigureOfTheirOwn) {
  auto a = figures("1 client", "throughput", {100, 101, 99});
  auto b = a;
  a.points[0].failures = {{0, 100}, {0, 100}, {0, 100}};
  b.points[0].failures = {{30, 100}, {31, 100}, {29, 100}};
  const auto worse = compare_results(a, b, {});
  ASSERT_TRUE(worse) << worse.error().message;
  ASSERT_EQ(worse->figures.size(), 2U);
  const auto& failed = worse->figures[1];
  EXPECT_EQ(failed.figure, "error_rate");
  EXPECT_EQ(failed.a, 0);
  EXPECT_DOUBLE_EQ(failed.b, 0.3);
  EXPECT_TRUE(failed.is_worse);
  EXPECT_TRUE(worse->has_worse());
  EXPECT_EQ(verdict_words(failed), "WORSE by 30 points");
  EXPECT_EQ(verdict_words(worse->figures[0]), "no difference");
  const auto better = compare_results(b, a, {});
  ASSERT_TRUE(better) << better.error().message;
  EXPECT_FALSE(better->has_worse());
  EXPECT_EQ(verdict_words(better->figures.at(1)), "better by 30 points");
  // Where nothing failed there is nothing to compare.
  EXPECT_EQ(compare_results(a, a, {})->figures.size(), 1U);
  b.points[0].is_valid = false;
  EXPECT_FALSE(compare_results(a, b, {})->has_worse());
}

// One request of each trial was never sent.
TEST(ReadResultFigures, CountsFailuresOfEachTrial) {
  const auto read = read_result_figures(result_json(result(0.02)), "a.json");
  ASSERT_TRUE(read) << read.error().message;
  const auto& failures = read->points.at(0).failures;
  ASSERT_EQ(failures.size(), 2U);
  EXPECT_EQ(failures[0].failed, 1U);
  EXPECT_EQ(failures[0].sent, 81U);
  // More answers than requests, and a trial that has sent nothing, have no share.
  for (const std::string requests : {R"({"sent":1,"answered":2})", R"({"sent":0,"answered":0})"}) {
    const auto odd = read_result_figures(
        R"({"schema_version":1,"points":[{"load":"x","trials":[{"valid":true,"figures":{},)"
        R"("requests":)" +
            requests + "}]}]}",
        "a.json");
    ASSERT_TRUE(odd) << odd.error().message;
    EXPECT_TRUE(odd->points.at(0).failures.empty()) << requests;
  }
}

TEST(CompareResults, RefusesWhatCannotBeCompared) {
  EXPECT_EQ(compare_results(figures("1 client", "throughput", {1, 2}),
                            figures("2 clients", "throughput", {1, 2}), {})
                .error()
                .message,
            "the results have no load and figure in common");
  EXPECT_EQ(compare_results(figures("x", "throughput", {1}), figures("x", "throughput", {1}), {})
                .error()
                .message,
            "a comparison needs at least two trials a side: 1");
}

}  // namespace
}  // namespace muster
