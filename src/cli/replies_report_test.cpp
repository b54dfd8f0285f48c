#include "cli/replies_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

RepliesReport report() {
  RepliesReport report;
  report.progress.text_count = 1000;
  report.progress.token_count = 24'000;
  report.progress.reply_token_count = 64'000;
  report.progress.resumed_count = 20;
  report.progress.blank_count = 1;
  report.progress.bad_count = 2;
  DeviceProgress first;
  first.name = "cpu:0";
  first.text_count = 600;
  first.token_count = 40'000;
  first.ready_seconds = 25;
  first.state = "ready";
  DeviceProgress second = first;
  second.name = "cpu:1";
  second.text_count = 400;
  second.token_count = 24'000;
  second.restart_count = 2;
  report.progress.devices = {first, second};
  report.equality_class = "avx512";
  report.out = "r.jsonl";
  report.total_seconds = 32;
  report.first_result_seconds = 1.5;
  return report;
}

constexpr TerminalInfo kTerminal{.is_terminal = true, .width = 80};

// 1,000 replies and 64,000 tokens in 32 s; cpu:0 40,000 tokens in 25 s.
TEST(DescribeReplies, SaysWhatWasDoneAndHowFast) {
  EXPECT_EQ(describe_replies(report(), kTerminal),
            "1,000 replies in 32.00 s: 31 replies/s, 2,000 tokens/s, precision own\n"
            "r.jsonl [1,020 replies]; 24,000 tokens of prompts, 64,000 of replies\n"
            "20 replies were there already (--resume)\n"
            "1 blank line was passed over\n"
            "2 bad records were skipped; their lines say why\n"
            "\n"
            "device  replies  tokens  tokens/s  restarts\n"
            "cpu:0       600  40,000     1,600         0\n"
            "cpu:1       400  24,000       960         2\n");
}

TEST(DescribeReplies, SaysHowMuchOfThePromptsWasThereAlready) {
  auto cached = report();
  cached.cached_token_count = 16'000;
  const TerminalInfo wide{.is_terminal = true, .width = 120};
  EXPECT_NE(describe_replies(cached, wide)
                .find("r.jsonl [1,020 replies]; 24,000 tokens of "
                      "prompts (16,000 cached), 64,000 of replies\n"),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(replies_report_json(cached))["cached_prompt_tokens"], 16'000);
}

// 12 in 32 s are 0.375/s, 60 are 1.875/s, 319 are 9.97/s.
TEST(DescribeReplies, SlowIsNotNothing) {
  const auto rate_of = [](std::uint64_t count) {
    auto slow = report();
    slow.progress.text_count = count;
    const auto text = describe_replies(slow, kTerminal);
    const auto begin = text.find(" s: ") + 4;
    return text.substr(begin, text.find('/') - begin);
  };
  EXPECT_EQ(rate_of(0), "0 replies");
  EXPECT_EQ(rate_of(12), "0.38 replies");
  EXPECT_EQ(rate_of(60), "1.9 replies");
  EXPECT_EQ(rate_of(319), "10 replies");
  EXPECT_EQ(rate_of(320), "10 replies");
}

TEST(DescribeReplies, OneIsNotManyAndADeviceThatWasOfNoUseIsNamed) {
  auto one = report();
  one.progress.text_count = 1;
  one.progress.token_count = 1;
  one.progress.resumed_count = one.progress.blank_count = 0;
  one.progress.bad_count = 1;
  one.progress.devices[1].state = "given up";
  one.progress.devices[1].reason = "out of memory";
  const auto text = describe_replies(one, kTerminal);
  EXPECT_EQ(text.find("1 reply in 32.00 s: 0.031 replies/s, 2,000 tokens/s, precision own\n"
                      "r.jsonl [1 reply]; 1 token of prompts, 64,000 of replies\n"
                      "1 bad record was skipped; its line says why\n"),
            0U)
      << text;
  EXPECT_TRUE(text.ends_with("warning: cpu:1 was given up: out of memory\n")) << text;
}

TEST(DescribeReplies, SaysThatNothingWasLeftToDo) {
  auto complete = report();
  complete.was_complete = true;
  EXPECT_EQ(describe_replies(complete, kTerminal),
            "r.jsonl is complete already [20 replies]: nothing to do\n");
}

TEST(RepliesReportJson, HasTheFiguresOfTheRunAndItsDevices) {
  auto narrow = report();
  narrow.kv_cache_dtype = KvCacheDtype::Int8;
  const auto json = nlohmann::json::parse(replies_report_json(narrow));
  EXPECT_EQ(json["out"], "r.jsonl");
  EXPECT_EQ(json["was_complete"], false);
  EXPECT_EQ(json["reply_count"], 1000);
  EXPECT_EQ(json["prompt_tokens"], 24'000);
  EXPECT_EQ(json["completion_tokens"], 64'000);
  EXPECT_EQ(json["resumed_count"], 20);
  EXPECT_EQ(json["bad_count"], 2);
  EXPECT_EQ(json["precision"], "own");
  EXPECT_EQ(json["kv_cache_dtype"], "int8");
  EXPECT_EQ(json["decoder_class"], "avx512");
  EXPECT_EQ(json["total_seconds"], 32);
  EXPECT_EQ(json["first_reply_seconds"], 1.5);
  EXPECT_EQ(json["devices"][1]["name"], "cpu:1");
  EXPECT_EQ(json["devices"][1]["restart_count"], 2);
}

}  // namespace
}  // namespace muster
