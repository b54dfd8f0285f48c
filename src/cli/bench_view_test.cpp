#include "cli/bench_view.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"

namespace muster {
namespace {

Sample answered(double intended, double latency, double lag = 0) {
  return {.intended = intended,
          .ready = intended,
          .started = intended + lag,
          .sent = intended + lag,
          .first_byte = intended + latency,
          .end = intended + latency,
          .status = 200,
          .outcome = SampleEnd::Answered};
}

BenchTrial trial(double latency, double lag = 0) {
  BenchTrial made;
  for (int i = 0; i < 500; ++i) {
    made.samples.samples.push_back(answered(0.02 * i, latency + 1e-5 * (i % 10), lag));
  }
  made.samples.sending_seconds = 10;
  made.summary = summarize_trial(
      made.samples, {.is_open_loop = true, .offered_per_second = 50, .warm_up = {.seconds = 0.0}});
  return made;
}

BenchResult result(std::vector<BenchTrial> trials) {
  BenchResult made;
  made.points.push_back({.load = "poisson 50/s", .trials = std::move(trials)});
  return made;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// The last of 500 answers comes 0.09 ms after the ten seconds: 499 count.
TEST(BenchText, BeginsWithTheVerdict) {
  const auto text = bench_text(result({trial(0.02)}), 120);
  EXPECT_EQ(
      first_line(text),
      "poisson 50/s: 49.9 answers/s, latency p50 20.0 ms (20.0 to 20.0), p99 20.1 ms (20.1 to "
      "20.1); 0 of 500 failed");
  EXPECT_NE(
      text.find("requests: 500 sent, 500 answered; 50.0/s offered, 50.0/s sent, 49.9/s answered\n"),
      std::string::npos)
      << text;
}

TEST(BenchText, SaysFirstThatARunIsInvalid) {
  EXPECT_EQ(first_line(bench_text(result({trial(0.02, 0.0032)}), 120)),
            "INVALID: the load generator was late: 99th percentile of the send lag 3.20 ms, limit "
            "1.00 ms");
}

TEST(BenchText, FitsEightyColumns) {
  auto made = result({trial(0.02)});
  auto& only = made.points[0].trials[0];
  only.summary.stages = {{.name = "queue", .seconds = 0.01}};
  only.summary.is_saturated = true;
  only.machine.others_share = 0.5;
  only.samples.problems = {std::string(30, 'a') + " " + std::string(60, 'b')};
  for (const auto& text : {bench_text(made, 80), bench_text(result({trial(0.02, 0.0032)}), 80)}) {
    for (const auto& line : split(text, '\n')) EXPECT_LE(line.size(), 80U) << line;
  }
  EXPECT_NE(bench_text(made, 80).find("one is part of\n    their latency, but"), std::string::npos)
      << "one sentence, which goes on where its line ends";
  EXPECT_NE(bench_text(made, 80).find("failed: " + std::string(30, 'a') + "\n  bbb"),
            std::string::npos);
}

TEST(BenchText, ExplainsWaitsForConnections) {
  auto one = trial(0.02);
  for (auto& sample : one.samples.samples)
    sample.ready = sample.started = sample.sent = sample.intended + 0.005;
  one.summary = summarize_trial(one.samples, {.is_open_loop = true, .warm_up = {.seconds = 0.0}});
  EXPECT_NE(bench_text(result({one}), 80).find("all connections were busy at times"),
            std::string::npos);
}

// 0.03 s of an answer of 0.02: a negative rest would be the time of nothing.
TEST(BenchText, SaysThatStagesCannotBeRight) {
  auto one = trial(0.02);
  one.samples.stages = {{"work", std::vector<double>(500, 0.03)}};
  one.samples.stages_left_out = 7;
  one.summary = summarize_trial(one.samples, {.is_open_loop = true, .warm_up = {.seconds = 0.0}});
  const auto text = bench_text(result({one}), 200);
  EXPECT_NE(text.find("of which the server reports: 30.0 work\n"), std::string::npos) << text;
  EXPECT_NE(text.find("in 500 of 500 answers the server's stages are longer than it had the "
                      "request: they overlap, or its clock is wrong; 7 of the times "),
            std::string::npos)
      << text;
  EXPECT_NE(bench_text(result({one, one}), 200).find("in 1,000 of 1,000 answers the server's"),
            std::string::npos);
  EXPECT_EQ(bench_text(result({trial(0.02)}), 200).find("the server's stages"), std::string::npos);
}

// Each counts 499 answers, so an answer is 0.1/s; t of two degrees is 4.303: 0.25/s to both sides.
TEST(BenchText, ShowsMeansOverTrials) {
  const auto text = bench_text(result({trial(0.02), trial(0.021), trial(0.022)}), 80);
  EXPECT_EQ(first_line(text),
            "poisson 50/s: 49.9 answers/s (49.7 to 50.1), 3 trials; 0 of 1,500 failed");
  EXPECT_NE(text.find("latency_p50 (ms)   21.0"), std::string::npos) << text;
}

// The first trial is whole: 0 of 500 and 150 of 500.
TEST(BenchText, CountsTheFailuresOfAllTrials) {
  auto failing = trial(0.02);
  for (std::size_t i = 0; i < 150; ++i) {
    failing.samples.samples[i].outcome = SampleEnd::BadStatus;
  }
  failing.summary =
      summarize_trial(failing.samples, {.is_open_loop = true, .warm_up = {.seconds = 0.0}});
  const auto line = first_line(bench_text(result({trial(0.02), failing}), 80));
  EXPECT_TRUE(line.ends_with(", 2 trials; 150 of 1,000 failed")) << line;
}

// 500 requests, one each 20 ms: those before 0.2 s are ten. 490 and 10 are what was sent.
TEST(BenchText, SaysHowManyRequestsTheWarmUpHad) {
  auto one = trial(0.02);
  one.samples.samples.back().outcome = SampleEnd::TimedOut;
  one.summary = summarize_trial(one.samples, {.warm_up = {.seconds = 0.19}});
  const auto text = bench_text(result({one}), 120);
  EXPECT_NE(text.find("requests: 500 sent, 10 of them in the warm-up; 489 answered, 1 timed_out, "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("warm-up: the first 0.19 s are not counted, as --warm-up says\n"),
            std::string::npos)
      << text;
  one.summary.is_warm_up_given = false;
  one.summary.is_steady = true;
  EXPECT_NE(bench_text(result({one}), 120)
                .find("0.19 s are not counted, by the test for steadiness; the rest is steady\n"),
            std::string::npos);
  EXPECT_NE(bench_text(result({one, one}), 80)
                .find("requests: 1,000 sent, 20 of them in the warm-up; 978 answered, "
                      "2 timed_out\n"),
            std::string::npos);
}

// All requests of a trace may be meant for one moment, and nothing was sent for any time.
TEST(BenchText, ALoadOfOneMomentHasNoRate) {
  auto one = trial(0.02);
  one.summary.counted_seconds = 0;
  EXPECT_EQ(first_line(bench_text(result({one, one}), 80)),
            "poisson 50/s: no rate, 2 trials; 0 of 1,000 failed");
  const auto text = bench_text(result({one}), 80);
  EXPECT_TRUE(text.starts_with("poisson 50/s: no rate, latency p50 20.0 ms")) << text;
  EXPECT_NE(text.find("requests: 500 sent, 500 answered; no rate\n"), std::string::npos) << text;
}

// One answer each 3 s, of which the first comes when the two seconds of sending are over.
TEST(BenchText, AnswersLongerThanTheTrialHaveNoRate) {
  BenchTrial one;
  one.samples.samples = {answered(0, 3)};
  one.samples.sending_seconds = 2;
  one.summary = summarize_trial(one.samples, {.warm_up = {.seconds = 0.0}});
  EXPECT_EQ(first_line(bench_text(result({one, one}), 80)),
            "poisson 50/s: no rate, 2 trials; 0 of 2 failed");
  const std::string why =
      "came after the sending had ended, so there is no rate: let it send longer\n";
  EXPECT_NE(bench_text(result({one, one}), 120).find("2 of 2 answers " + why), std::string::npos);
  const auto text = bench_text(result({one}), 120);
  EXPECT_NE(text.find("requests: 1 sent, 1 answered, no rate of answers\n1 of 1 answers " + why),
            std::string::npos)
      << text;
  one.samples.samples.push_back(answered(3, 3));
  one.samples.sending_seconds = 4;
  one.summary = summarize_trial(one.samples, {.warm_up = {.seconds = 0.0}});
  EXPECT_NE(bench_text(result({one}), 200)
                .find("1 of 2 answers came after the sending had ended: answers/s may be up to 50 "
                      "% too low"),
            std::string::npos);
}

// No load is the best of those that have no rate, and one that has none is not the best.
TEST(BenchText, TheHighestThroughputIsOneThatWasMeasured) {
  auto none = trial(0.02);
  none.summary.counted_seconds = 0;
  auto made = result({none});
  made.points.push_back({.load = "8 clients", .trials = {none}});
  const auto unknown = first_line(bench_text(made, 120));
  EXPECT_TRUE(unknown.starts_with("poisson 50/s: no rate, ")) << unknown;
  made.points[1].trials = {trial(0.02)};
  const auto known = first_line(bench_text(made, 120));
  EXPECT_TRUE(known.starts_with("highest throughput: 8 clients: 49.9 answers/s, ")) << known;
}

// 100 requests a second for ten seconds, of which the server does 50: the last answer comes after
// 20 s, and 50/s is what it can do. Latencies grow by 0.01 s a request.
TEST(BenchText, TheRateOfAQueueThatGrowsIsNotCutShort) {
  BenchTrial one;
  for (int i = 0; i < 1000; ++i) {
    one.samples.samples.push_back(answered(0.01 * i, 0.015 + 0.01 * i));
  }
  one.samples.sending_seconds = 10;
  one.summary = summarize_trial(
      one.samples, {.is_open_loop = true, .offered_per_second = 100, .warm_up = {.seconds = 0.0}});
  EXPECT_EQ(one.summary.missed_at_end, 500U);  // 0.02 i + 0.015 s is within ten for 500 of them
  const auto text = bench_text(result({one}), 200);
  EXPECT_NE(text.find("100/s offered, 100/s sent, 50.0/s answered\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("too low"), std::string::npos) << text;
}

// 0 of 1,000: by Wilson's interval up to z^2 / (n + z^2) = 3.8415 / 1003.8415.
TEST(BenchText, AnErrorRateOfNothingHasAnInterval) {
  const auto made = result({trial(0.02), trial(0.02)});
  const auto mean = figure_mean(made.points[0], "error_rate", std::vector<double>{0, 0});
  EXPECT_EQ(mean.mean, 0);
  EXPECT_EQ(mean.low, 0);
  EXPECT_NEAR(mean.high, 0.0038268, 1e-6);
  const auto text = bench_text(made, 80);
  const auto row = text.find("error_rate");
  ASSERT_NE(row, std::string::npos) << text;
  EXPECT_NE(text.substr(row, text.find('\n', row) - row).find("0.004"), std::string::npos) << text;
}

TEST(BenchText, ShowsObjectivesAndPeaks) {
  auto made = result({trial(0.02)});
  made.points[0].objectives = judge_objectives(*parse_objectives("latency_p50<10ms"),
                                               figures_of(made.points[0].trials[0].summary));
  const auto text = bench_text(made, 80);
  EXPECT_EQ(first_line(text), "objectives missed");
  EXPECT_NE(text.find("objective latency_p50<10ms: MISSED (20.0 ms)\n"), std::string::npos) << text;
  made.peak = PeakResult{.rate = 40, .missed = 42};
  EXPECT_EQ(first_line(bench_text(made, 80)),
            "peak: 40.0/s keeps the objectives, 42.0/s misses them");
  made.peak = PeakResult{};
  EXPECT_EQ(first_line(bench_text(made, 80)), "no rate that was tried keeps the objectives");
}

// 500 answers are enough for the 99th percentile, and the 99.9th needs 3,688: at 50/s, 30 % more
// are 95.9 s.
TEST(BenchText, WhatIsNotKnownIsNotMissed) {
  auto made = result({trial(0.02)});
  auto& point = made.points[0];
  point.objectives = judge_point(*parse_objectives("latency_p99<50ms,latency_p999<50ms"), point);
  const auto text = bench_text(made, 120);
  EXPECT_EQ(first_line(text),
            "objectives not known: latency_p999<50ms: p999 needs 3688 counted answers, and there "
            "were 500");
  EXPECT_NE(text.find("objective latency_p99<50ms: met (20.1 ms)\nobjective latency_p999<50ms: NOT "
                      "known (p999 needs 3688 counted answers, and there were 500)\n"),
            std::string::npos)
      << text;
  made.peak = PeakResult{.rate = {}, .missed = 100, .unknown = 50};
  EXPECT_EQ(first_line(bench_text(made, 200)),
            "no rate is known to keep the objectives: at 50.0/s latency_p999 is not known (p999 "
            "needs 3688 counted answers, and there were 500): --duration 96s, 100/s misses them");
  made.peak->rate = 20;
  EXPECT_EQ(first_line(bench_text(made, 80)),
            "peak: 20.0/s keeps the objectives, 100/s misses them");
}

// Nothing shows that the server could not do more, nor that it cannot do this little.
TEST(BenchText, ALateGeneratorIsNoMissedObjective) {
  auto made = result({trial(0.02, 0.0032)});  // at 50 a second
  made.peak = PeakResult{.rate = 40, .missed = 50};
  EXPECT_TRUE(made.is_conclusive());
  EXPECT_EQ(first_line(bench_text(made, 80)),
            "peak: 40.0/s keeps the objectives; at 50.0/s this program was late");
  made.peak = PeakResult{.rate = {}, .missed = 50};
  EXPECT_FALSE(made.is_conclusive());
  EXPECT_EQ(first_line(bench_text(made, 120)),
            "INVALID: the load generator was late: 99th percentile of the send lag 3.20 ms, limit "
            "1.00 ms");
}

// What a server says of itself, and what stands in a file that somebody else has sent.
TEST(BenchText, WhatCameFromOutsideMovesNoCursor) {
  auto made = result({trial(0.02)});
  auto& only = made.points[0].trials[0];
  only.samples.problems = {"the stream reports an error: \"\u009b2J\""};
  only.summary.stages.push_back({.name = "queue\u009b2J", .seconds = 0.01});
  const auto text = bench_text(made, 80);
  EXPECT_NE(text.find("failed: the stream reports an error: \" 2J\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("10.0 queue 2J"), std::string::npos) << text;
  ResultDifference difference;
  difference.notes = {"only A has \033[2J"};
  EXPECT_NE(diff_text(difference, 80).find("note: only A has [2J\n"), std::string::npos);
}

TEST(DiffText, SaysWhichSideIsWorse) {
  ResultDifference difference;
  difference.figures.push_back(
      {.load = "1 client",
       .figure = "latency_p50",
       .a = 0.01,
       .b = 0.011,
       .comparison = {.ratio = 1.1, .low = 1.05, .high = 1.15, .difference = Difference::Higher},
       .is_worse = true});
  difference.notes = {"the environments differ"};
  const auto text = diff_text(difference, 80);
  EXPECT_EQ(first_line(text), "B is worse");
  EXPECT_NE(text.find("WORSE by 10.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("note: the environments differ\n"), std::string::npos);
  difference.figures[0].is_worse = false;
  EXPECT_EQ(first_line(diff_text(difference, 80)), "B is better");
  difference.figures[0].comparison.difference = Difference::None;
  EXPECT_EQ(first_line(diff_text(difference, 80)), "no difference");
  difference.figures[0].is_valid = false;
  const auto none = diff_text(difference, 80);
  EXPECT_EQ(first_line(none), "no verdict: nothing that was compared is valid");
  EXPECT_NE(none.find("none: invalid"), std::string::npos) << none;
}

// Three figures of two loads whose names begin alike.
ResultDifference two_loads() {
  ResultDifference difference;
  difference.figures = {
      {.load = "poisson 1000/s",
       .figure = "throughput",
       .a = 1000,
       .b = 900,
       .comparison = {.ratio = 0.9, .low = 0.88, .high = 0.92, .difference = Difference::Lower},
       .is_worse = true},
      {.load = "poisson 2000/s",
       .figure = "throughput",
       .a = 2000,
       .b = 2000,
       .comparison = {.ratio = 1, .low = 0.99, .high = 1.01, .difference = Difference::None}},
      {.load = "poisson 1000/s",
       .figure = "latency_p50",
       .a = 0.02,
       .b = 0.022,
       .comparison = {.ratio = 1.1, .low = 1.05, .high = 1.15, .difference = Difference::Higher},
       .is_worse = true}};
  return difference;
}

TEST(DiffText, HasALineForEachFigureWhereThereIsRoom) {
  EXPECT_EQ(
      diff_text(two_loads(), 120),
      "B is worse\n"
      "\n"
      "load            figure             A        B  B / A   from     to  verdict\n"
      "poisson 1000/s  throughput    1000/s    900/s  0.900  0.880  0.920  WORSE by 10.0 %\n"
      "poisson 2000/s  throughput    2000/s   2000/s  1.000  0.990  1.010  no difference\n"
      "poisson 1000/s  latency_p50  20.0 ms  22.0 ms  1.100  1.050  1.150  WORSE by 10.0 %\n");
}

// At the usual width every load was "poisson…", and no verdict could be told from another's.
TEST(DiffText, NamesEachLoadWholeWhereThereIsLessRoom) {
  EXPECT_EQ(diff_text(two_loads(), 80),
            "B is worse\n"
            "\n"
            "poisson 1000/s\n"
            "figure             A        B  B / A   from     to  verdict\n"
            "throughput    1000/s    900/s  0.900  0.880  0.920  WORSE by 10.0 %\n"
            "latency_p50  20.0 ms  22.0 ms  1.100  1.050  1.150  WORSE by 10.0 %\n"
            "\n"
            "poisson 2000/s\n"
            "figure           A       B  B / A   from     to  verdict\n"
            "throughput  2000/s  2000/s  1.000  0.990  1.010  no difference\n");
}

TEST(DiffText, SaysAllWithinFortyColumns) {
  const auto text = diff_text(two_loads(), 40);
  EXPECT_EQ(text,
            "B is worse\n"
            "\n"
            "poisson 1000/s\n"
            "figure       B / A  verdict\n"
            "throughput   0.900  WORSE by 10.0 %\n"
            "    A 1000/s, B 900/s, 0.880 to 0.920\n"
            "latency_p50  1.100  WORSE by 10.0 %\n"
            "    A 20.0 ms, B 22.0 ms, 1.050 to 1.150\n"
            "\n"
            "poisson 2000/s\n"
            "figure      B / A  verdict\n"
            "throughput  1.000  no difference\n"
            "    A 2000/s, B 2000/s, 0.990 to 1.010\n");
  for (const auto& line : split(text, '\n')) EXPECT_LE(line.size(), 40U) << line;
}

TEST(DiffText, NotesFitTheTerminal) {
  ResultDifference difference;
  difference.notes = {
      "poisson 100/s: latency_p99 is not compared: not each trial of A has it, and " +
      std::string(30, 'x')};
  const auto text = diff_text(difference, 60);
  for (const auto& line : split(text, '\n')) EXPECT_LE(line.size(), 60U) << line;
  EXPECT_NE(text.find("note: poisson 100/s: "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  "), std::string::npos) << "what goes on is indented";
}

TEST(DiffText, RatiosFarFromOneAreBounds) {
  ResultDifference difference;
  difference.figures.push_back({.load = "1 client",
                                .figure = "throughput",
                                .a = 10,
                                .b = 11,
                                .comparison = {.ratio = 1.1, .low = 1e-30, .high = 2.27e34}});
  const auto text = diff_text(difference, 80);
  EXPECT_NE(text.find("<0.001"), std::string::npos) << text;
  EXPECT_NE(text.find(">1000"), std::string::npos) << text;
}

TEST(SelftestText, CountsWhatIsMissed) {
  std::vector<SelftestCheck> checks{
      {.part = "queue", .what = "M/D/1", .measured = "1 ms", .required = "2 ms"}};
  EXPECT_EQ(first_line(selftest_text(checks)),
            "all 1 checks met: figures of this machine can be trusted");
  checks.push_back(
      {.part = "rate", .what = "5,000/s", .measured = "slow", .required = "fast", .is_met = false});
  EXPECT_EQ(first_line(selftest_text(checks)), "1 of 2 checks MISSED");
}

}  // namespace
}  // namespace muster
