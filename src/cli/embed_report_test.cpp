#include "cli/embed_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

EmbedReport report() {
  EmbedReport report;
  report.progress.text_count = 1000;
  report.progress.token_count = 24'000;
  report.progress.truncated_count = 3;
  report.progress.input_size_consumed = 5000;
  report.progress.input_size_total = 10'000;
  report.progress.input_size_read = 8000;
  report.progress.read_count = 1600;
  report.progress.elapsed_seconds = 3;
  DeviceProgress first;
  first.name = "cpu:0";
  first.text_count = 600;
  first.token_count = 14'000;
  first.busy_seconds = 3;
  first.ready_seconds = 4;
  first.state = "ready";
  first.weights_bytes = 90'000'000;
  first.load_peak_bytes = 14'000'000;
  first.activation_peak_bytes = 12'000'000;
  DeviceProgress second = first;
  second.name = "cpu:1";
  second.text_count = 400;
  second.token_count = 10'000;
  second.busy_seconds = 1;
  second.restart_count = 2;
  second.weights_bytes = 0;
  second.state = "restarting";
  report.progress.devices = {first, second};
  report.time = {.read = 0.4,
                 .wait = 2,
                 .wait_for_writer = 0.2,
                 .other = 1.4,
                 .start = 0.5,
                 .tokenize = 0.6,
                 .write = 0.8};
  report.dim = 384;
  report.precision = Precision::Bf16;
  report.precision_reason = "2.1x fp32";
  report.equality_class = "abc bf16";
  report.out = "x.npy";
  report.index = "x.index.jsonl";
  report.total_seconds = 4;
  report.first_result_seconds = 0.75;
  report.parent_cpu_seconds = 1;
  report.worker_cpu_seconds = 9;
  return report;
}

constexpr TerminalInfo kTerminal{.is_terminal = true, .width = 80};

// 1000 texts in 4 s; cpu:0 14,000 tokens in 4 s; busy 3 of 4 s and 1 of 4.
constexpr const char* kShort =
    "1,000 texts in 4.00 s: 250 texts/s, 6,000 tokens/s, bf16\n"
    "x.npy [1,000 x 384], index x.index.jsonl\n"
    "3 texts were cut at the token limit\n"
    "\n"
    "device  texts  tokens  tokens/s  busy  restarts\n"
    "cpu:0     600  14,000     3,500  75 %         0\n"
    "cpu:1     400  10,000     2,500  25 %         2\n";

TEST(DescribeReport, SaysInShortWhatWasDone) {
  EXPECT_EQ(describe_report(report(), kTerminal, false), kShort);
}

TEST(DescribeReport, SaysMoreWhereAsked) {
  // Busy (3 + 1) / (4 + 4); muster took 1 of 10 CPU seconds.
  EXPECT_EQ(describe_report(report(), kTerminal, true),
            "1,000 texts in 4.00 s: 250 texts/s, 6,000 tokens/s, bf16\n"
            "x.npy [1,000 x 384], index x.index.jsonl\n"
            "3 texts were cut at the token limit\n"
            "precision bf16: 2.1x fp32\n"
            "\n"
            "device  texts  tokens  tokens/s  busy  restarts\n"
            "cpu:0     600  14,000     3,500  75 %         0\n"
            "cpu:1     400  10,000     2,500  25 %         2\n"
            "\n"
            "time of muster     seconds  share\n"
            "read                  0.40   10 %\n"
            "wait for devices      2.00   50 %\n"
            "wait for the disk     0.20    5 %\n"
            "other                 1.40   35 %\n"
            "tokenise, beside      0.60   15 %\n"
            "write, beside         0.80   20 %\n"
            "\n"
            "devices busy 50 %; first worker ready after 0.50 s, first vector after 0.75 s\n"
            "CPU time: 9.0 s in the workers, 1.0 s in muster (10 %)\n");
}

// The next run of this model does not measure, and is as fast as this one was behind it.
TEST(DescribeReport, MeasuringIsNoPartOfTheSpeed) {
  auto measured = report();
  measured.time.measure = 4;
  measured.total_seconds = 8;
  const auto text = describe_report(measured, kTerminal, true);
  EXPECT_TRUE(
      text.starts_with("1,000 texts in 4.00 s: 250 texts/s, 6,000 tokens/s, bf16\n"
                       "x.npy [1,000 x 384], index x.index.jsonl\n"
                       "before that 4.00 s of measuring which precision is fastest, once "
                       "for this model\n"
                       "  and processor\n"))
      << text;
  EXPECT_NE(text.find("measure precisions     4.00   50 %\n"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(report_json(measured));
  EXPECT_EQ(json["time"]["measure_seconds"], 4);
  EXPECT_EQ(json["total_seconds"], 8);
}

TEST(DescribeReport, ColoursWhatWasDoneAndWhatWasNot) {
  auto with_one_less = report();
  with_one_less.progress.devices[1].state = "given up";
  with_one_less.progress.devices[1].reason = "out of memory";
  auto terminal = kTerminal;
  terminal.has_color = true;
  const auto text = describe_report(with_one_less, terminal, false);
  EXPECT_TRUE(text.starts_with("\x1b[0;1;38;5;36m1,000 texts\x1b[0m in 4.00 s")) << text;
  EXPECT_NE(text.find("\n\x1b[0;1;38;5;214mwarning:\x1b[0m cpu:1 was given up: out of memory\n"),
            std::string::npos)
      << text;
}

TEST(DescribeReport, NamesDuplicateIdsAndWhatWentToAStream) {
  auto duplicates = report();
  duplicates.progress.duplicate_id_count = 2;
  duplicates.first_duplicate = "in.jsonl:7";
  EXPECT_NE(describe_report(duplicates, kTerminal, false)
                .find("\n2 records have the id of an earlier one, the first at in.jsonl:7\n"),
            std::string::npos);
  duplicates.are_all_ids_compared = false;
  EXPECT_NE(describe_report(duplicates, kTerminal, false)
                .find("\nids were compared with the first 1,048,576 alone\n"),
            std::string::npos);
  const auto json = nlohmann::json::parse(report_json(duplicates));
  EXPECT_EQ(json["duplicate_id_count"], 2);
  EXPECT_EQ(json["first_duplicate_id"], "in.jsonl:7");
  auto stream = report();
  stream.out = "standard output";
  stream.index.clear();
  stream.progress.bad_count = 1;
  const auto text = describe_report(stream, kTerminal, false);
  EXPECT_NE(text.find("\n1 bad record was skipped; its line says why\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\nstandard output [1,000 x 384]\n"), std::string::npos) << text;
}

TEST(DescribeReport, OneIsNotMany) {
  auto one = report();
  one.progress.resumed_count = 1;
  one.progress.blank_count = 1;
  one.progress.truncated_count = 1;
  one.progress.bad_count = 1;
  EXPECT_NE(describe_report(one, kTerminal, false)
                .find("\n1 row was there already (--resume)\n"
                      "1 blank line was passed over\n"
                      "1 text was cut at the token limit\n"
                      "1 bad record was skipped; the index says why\n"),
            std::string::npos);
}

TEST(DescribeReport, NamesADeviceThatWasOfNoUse) {
  auto with_one_less = report();
  auto& second = with_one_less.progress.devices[1];
  second.state = "given up";
  second.reason = "the model cannot be loaded: out of memory";
  EXPECT_NE(describe_report(with_one_less, kTerminal, false)
                .find("warning: cpu:1 was given up: the model cannot be loaded: out of memory\n"),
            std::string::npos);
  const auto json = nlohmann::json::parse(report_json(with_one_less));
  EXPECT_EQ(json["devices"][1]["state"], "given up");
  EXPECT_EQ(json["devices"][1]["reason"], "the model cannot be loaded: out of memory");
}

TEST(DescribeReport, SaysThatNothingWasLeftToDo) {
  EmbedReport complete;
  complete.was_complete = true;
  complete.progress.resumed_count = 1000;
  complete.dim = 384;
  complete.out = "x.npy";
  EXPECT_EQ(describe_report(complete, kTerminal, false),
            "x.npy is complete already [1,000 x 384]: nothing to do\n");
  EXPECT_EQ(nlohmann::json::parse(report_json(complete))["was_complete"], true);
}

TEST(DescribeReport, ClaimsNoSpeedWithoutTime) {
  EmbedReport empty;
  empty.progress.devices.resize(1);
  const auto text = describe_report(empty, kTerminal, false);
  EXPECT_NE(text.find("0 texts in 0.00 s: - texts/s, - tokens/s"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
}

TEST(ReportJson, HasEveryField) {
  const auto json = nlohmann::json::parse(report_json(report()));
  EXPECT_EQ(json["text_count"], 1000);
  EXPECT_EQ(json["input_total_bytes"], 10'000);
  EXPECT_EQ(json["precision"], "bf16");
  EXPECT_EQ(json["time"]["wait_seconds"], 2.0);
  EXPECT_EQ(json["devices"][1]["restart_count"], 2);
  EXPECT_EQ(json["devices"][1]["state"], "restarting");
  EXPECT_EQ(json["devices"][0]["memory"]["weights_bytes"], 90'000'000);
  EXPECT_EQ(json["devices"][0]["memory"]["load_peak_bytes"], 14'000'000);
  EXPECT_EQ(json["devices"][0]["memory"]["activation_peak_bytes"], 12'000'000);
  EXPECT_TRUE(json["devices"][1]["memory"].is_null()) << "its worker counts nothing";
  EXPECT_EQ(json["worker_cpu_seconds"], 9.0);
  auto from_pipe = report();
  from_pipe.progress.input_size_total.reset();
  EXPECT_TRUE(nlohmann::json::parse(report_json(from_pipe))["input_total_bytes"].is_null());
}

TEST(ProgressReading, HasALaneForEachDeviceWithWhatKeepsItFromWork) {
  const auto reading = progress_reading(report().progress);
  ASSERT_EQ(reading.lanes.size(), 2U);
  EXPECT_EQ(reading.lanes[0].name, "cpu:0");
  EXPECT_EQ(reading.lanes[0].count, 600U);
  EXPECT_EQ(reading.lanes[0].state, "");
  EXPECT_EQ(reading.lanes[1].state, "restarting");
  EXPECT_EQ(reading.counts[1].count, 24'000U);
  auto from_pipe = report().progress;
  from_pipe.input_size_total.reset();
  EXPECT_FALSE(progress_reading(from_pipe).fraction);
}

TEST(ProgressReading, CountsTheTokensThatTheDevicesFinished) {
  // 24,000 of the 32,000 tokens of 8000 of 10,000 bytes: 0.8 * 0.75.
  auto progress = report().progress;
  progress.read_token_count = 32'000;
  ASSERT_TRUE(progress_reading(progress).fraction);
  EXPECT_DOUBLE_EQ(*progress_reading(progress).fraction, 0.6);
  // The first 2000 bytes were done before: (2000 + 6000 * 0.75) / 10,000.
  progress.input_size_resumed = 2000;
  EXPECT_DOUBLE_EQ(*progress_reading(progress).fraction, 0.65);
  // 8000 of them and of the 40,000 read belong to rows that were found ahead.
  progress.read_token_count = 40'000;
  progress.resumed_token_count = 8'000;
  EXPECT_DOUBLE_EQ(*progress_reading(progress).fraction, 0.68);  // (2000 + 6000 * 0.8) / 10,000
  progress.resumed_token_count = 0;
  progress.read_token_count = 20'000;  // fewer than done: retried texts count twice
  EXPECT_DOUBLE_EQ(*progress_reading(progress).fraction, 0.8);
}

TEST(ProgressReading, CountsTextsWhereNobodyCountsTokensBefore) {
  // 600 + 400 texts of 1600 read, which are 8000 of 10,000 bytes: 0.8 * 1000 / 1600.
  const auto reading = progress_reading(report().progress);
  ASSERT_TRUE(reading.fraction);
  EXPECT_DOUBLE_EQ(*reading.fraction, 0.5);
  EXPECT_EQ(reading.counts[0].count, 1000U);
  auto resumed = report().progress;
  resumed.resumed_count = 300;  // 0.8 * 1300 / 1600
  EXPECT_DOUBLE_EQ(*progress_reading(resumed).fraction, 0.65);
  resumed.resumed_count = 900;
  EXPECT_DOUBLE_EQ(*progress_reading(resumed).fraction, 0.8) << "no more than was read";
}

TEST(ProgressReading, NamesThePhaseOfTheStart) {
  CorpusProgress starting;
  starting.phase = "starting workers";
  EXPECT_EQ(progress_reading(starting).phase, "starting workers");
}

// A server's own devices, their busy time and their CPU time are not this program's to tell.
TEST(DescribeReport, ClaimsNothingOfAServersInside) {
  auto made = report();
  made.progress.devices.resize(1);
  made.progress.devices[0].name = "127.0.0.1:8000";
  made.progress.devices[0].busy_seconds.reset();
  made.worker_cpu_seconds.reset();
  const auto text = describe_report(made, kTerminal, true);
  EXPECT_NE(text.find("127.0.0.1:8000    600  14,000     3,500     -         0\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("the server was ready after 0.50 s, first vector after 0.75 s\n"
                      "CPU time: 1.0 s in muster; the server counts its own\n"),
            std::string::npos)
      << text;
  const auto json = nlohmann::json::parse(report_json(made));
  EXPECT_TRUE(json["devices"][0]["busy_seconds"].is_null());
  EXPECT_TRUE(json["worker_cpu_seconds"].is_null());
}

}  // namespace
}  // namespace muster
