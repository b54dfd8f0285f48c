// Whole runs over real files with real worker processes (stand_ins/counting_worker): every reply
// tells its prompt.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "coordinator/decoder_fixture.h"
#include "dataset/output_record.h"
#include "jobs/replies_fixture.h"
#include "jobs/reply_seed.h"

namespace muster {
namespace {

using Json = nlohmann::json;

class RepliesTest : public RepliesFixture {
 protected:
  RepliesTest() : RepliesFixture("replies", 2) {}

  std::vector<Json> lines() const {
    std::vector<Json> all;
    std::istringstream text(output());
    for (std::string line; std::getline(text, line);) all.push_back(Json::parse(line));
    return all;
  }

  std::string without_folder(std::string text) const {
    const auto folder = folder_.string() + "/";
    for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder)) {
      text.erase(at, folder.size());
    }
    return text;
  }
};

TEST_F(RepliesTest, WritesALineForEachPromptInInputOrder) {
  std::string prompts;
  for (int i = 0; i < 300; ++i) {
    prompts += std::string(1 + i % 5, 'q') + static_cast<char>('a' + i * 7 % 26) + "\n";
  }
  write_input("in.txt", prompts);
  const auto report = run_well();
  EXPECT_EQ(report.progress.text_count, 300U);
  EXPECT_EQ(report.equality_class, "counting");
  const auto all = lines();
  ASSERT_EQ(all.size(), 300U);
  std::uint64_t prompt_tokens = 0;
  std::uint64_t reply_tokens = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    const auto last = static_cast<char>('a' + i * 7 % 26);
    EXPECT_EQ(all[i]["index"], i);
    EXPECT_EQ(all[i]["line"], i + 1);
    EXPECT_EQ(all[i]["input"], options_.input.inputs[0]);
    EXPECT_EQ(all[i]["text"], counted_reply(last));
    EXPECT_EQ(all[i]["finish_reason"], "stop");
    EXPECT_EQ(all[i]["prompt_tokens"], 2 + i % 5);
    // Up to "z", the two bytes of "é", and nine digits.
    EXPECT_EQ(all[i]["completion_tokens"], 'z' - last + 2 + 9);
    prompt_tokens += all[i]["prompt_tokens"].get<std::uint64_t>();
    reply_tokens += all[i]["completion_tokens"].get<std::uint64_t>();
  }
  EXPECT_EQ(report.progress.token_count, prompt_tokens);
  EXPECT_EQ(report.progress.reply_token_count, reply_tokens);
  ASSERT_EQ(report.progress.devices.size(), 2U);
  EXPECT_EQ(report.progress.devices[0].text_count + report.progress.devices[1].text_count, 300U);
  EXPECT_EQ(report.progress.devices[0].token_count + report.progress.devices[1].token_count,
            reply_tokens);
  EXPECT_EQ(phases_, (std::vector<std::string>{"reading the model", "starting workers",
                                               "loading the model", ""}));
}

// 40 ids: two blocks of 16, and the last id is computed in any case. Each of the workers computes
// them once; with one worker that is told.
TEST_F(RepliesTest, PromptsBeginWhereEarlierOnesHaveBeen) {
  std::string prompts;
  for (int i = 0; i < 5; ++i) prompts += std::string(40, 'y') + "\n";
  write_input("in.txt", prompts);
  options_.devices.resize(1);
  EXPECT_EQ(run_well().cached_token_count, 4 * 32U);
  const auto with_cache = output();
  options_.has_prefix_cache = false;
  EXPECT_EQ(run_well().cached_token_count, 0U);
  EXPECT_TRUE(output() == with_cache);
}

TEST_F(RepliesTest, TheRecordSaysHowTheyWereMade) {
  write_input("in.txt", "a\nb\n");
  run_well();
  const auto record = read_output_record(files_.about);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->kind, OutputKind::Replies);
  EXPECT_EQ(record->row_count, 2U);
  EXPECT_EQ(record->precision, "own");
  EXPECT_EQ(record->model, options_.source.string());
  EXPECT_TRUE(check_output(*record, options_.out));
  for (const auto& path : {files_.journal, files_.out_part, files_.ahead, files_.lock}) {
    EXPECT_FALSE(exists(path)) << path;
  }
}

TEST_F(RepliesTest, AReplyEndsAtItsLimitTheContextOrAStopString) {
  write_input("in.txt", "a\n" + std::string(95, 'a') + "\n");
  options_.token_limit = 8;
  run_well();
  EXPECT_EQ(lines()[0]["text"], "bcdefghi");
  EXPECT_EQ(lines()[0]["finish_reason"], "length");
  EXPECT_EQ(lines()[1]["text"], "bcdef") << "the context is 100 tokens";
  EXPECT_EQ(lines()[1]["finish_reason"], "length");
  options_.stops = {"ef", "x"};
  const auto report = run_well();
  EXPECT_EQ(lines()[0]["text"], "bcd");
  EXPECT_EQ(lines()[0]["finish_reason"], "stop");
  EXPECT_EQ(lines()[0]["completion_tokens"], 5);
  EXPECT_EQ(report.progress.devices[0].text_count + report.progress.devices[1].text_count, 2U);
  options_.stops = {};
  options_.token_limit = 40;
  options_.ignores_stop_ids = true;
  run_well();
  EXPECT_EQ(lines()[0]["text"], counted_reply('a') + "9 ?") << "and ids without a text";
  EXPECT_EQ(lines()[0]["completion_tokens"], 40);
}

// Behind "x" come "y", "z" and the first byte of "é": at the limit a character is not whole, and is
// shown as one, which ends the reply.
TEST_F(RepliesTest, AStopStringThatIsWholeOnlyAtTheEndIsTold) {
  write_input("in.txt", "x\n");
  options_.token_limit = 3;
  options_.stops = {"\uFFFD"};
  run_well();
  EXPECT_EQ(lines()[0]["text"], "yz");
  EXPECT_EQ(lines()[0]["finish_reason"], "stop");
  EXPECT_EQ(lines()[0]["completion_tokens"], 3);
}

TEST_F(RepliesTest, TakesTextsConversationsAndIdsOfJson) {
  write_input("in.jsonl",
              R"({"id":"k1","text":"c"})"
              "\n"
              R"({"id":2,"messages":[{"role":"user","content":"a"},{"role":"user","content":"x"}]})"
              "\n");
  options_.input.id_field = "id";
  options_.system = "s";
  run_well();
  EXPECT_EQ(lines()[0]["id"], "k1");
  EXPECT_EQ(lines()[0]["text"], counted_reply('c'));
  EXPECT_EQ(lines()[0]["prompt_tokens"], 2);
  EXPECT_EQ(lines()[1]["id"], "2");
  EXPECT_EQ(lines()[1]["text"], counted_reply('x'));
  EXPECT_EQ(lines()[1]["prompt_tokens"], 3);
}

TEST_F(RepliesTest, BlankLinesArePassedOverAndCounted) {
  write_input("in.txt", "a\n\n  \nb\n");
  EXPECT_EQ(run_well().progress.blank_count, 2U);
  EXPECT_EQ(lines()[1]["line"], 4);
  EXPECT_EQ(lines()[1]["index"], 1);
}

TEST_F(RepliesTest, SeedsDependOnTheRunsAndThePlaceAlone) {
  write_input("in.txt", "a\n\na\n");
  options_.sampling.temperature = 0.5;
  options_.sampling.seed = 7;
  run_well();
  EXPECT_EQ(lines()[0]["seed"], reply_seed(7, 0));
  EXPECT_EQ(lines()[1]["seed"], reply_seed(7, 1));
  options_.sampling.temperature = 0;
  run_well();
  EXPECT_FALSE(lines()[0].contains("seed")) << "nothing is drawn";
}

TEST_F(RepliesTest, ABadRecordEndsTheRunWithItsPlaceOrIsSkipped) {
  write_input("in.jsonl",
              "{\"text\":\"a\"}\n{\"text\":3}\n{\"messages\":[{\"role\":\"user\"}]}\n"
              "{\"text\":\"no\"}\n{\"text\":\"b\"}\n");
  EXPECT_EQ(without_folder(error_of_run()),
            "in.jsonl:2: field \"text\" is a number, not a string; --skip-bad goes on without such "
            "records");
  EXPECT_FALSE(exists(options_.out));
  options_.skip_bad = true;
  options_.restart = true;
  const auto report = run_well();
  EXPECT_EQ(report.progress.bad_count, 3U);
  EXPECT_EQ(report.progress.text_count, 2U);
  const auto all = lines();
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[1]["text"], nullptr);
  EXPECT_EQ(without_folder(all[1]["reason"]),
            "in.jsonl:2: field \"text\" is a number, not a string");
  EXPECT_EQ(without_folder(all[2]["reason"]), "in.jsonl:3: messages[0] has no content");
  EXPECT_EQ(without_folder(all[3]["reason"]),
            "in.jsonl:4: chat template, line 1: the template refuses the conversation: not this");
  EXPECT_EQ(all[4]["text"], counted_reply('b'));
  EXPECT_EQ(all[4]["index"], 4);
}

TEST_F(RepliesTest, APromptThatIsLongerThanTheContextIsABadRecord) {
  write_input("in.txt", "a\n" + std::string(100, 'b') + "\n" + std::string(99, 'c') + "\n");
  const std::string sentence =
      "in.txt:2: the context is 100 tokens, prompt and reply together, and the prompt has as many "
      "or more";
  EXPECT_EQ(without_folder(error_of_run()), sentence + "; --skip-bad goes on without such records");
  options_.skip_bad = true;
  options_.restart = true;
  EXPECT_EQ(run_well().progress.bad_count, 1U);
  EXPECT_EQ(without_folder(lines()[1]["reason"]), sentence);
  EXPECT_EQ(lines()[2]["text"], "d");
  EXPECT_EQ(lines()[2]["finish_reason"], "length");
}

// "?" is the token 40.
TEST_F(RepliesTest, APromptThatKillsEveryWorkerIsNamedOrSkipped) {
  std::string prompts;
  for (int i = 0; i < 40; ++i) prompts += i == 20 ? "why?\n" : "a\n";
  write_input("in.txt", prompts);
  order("poison=40");
  const auto refused = without_folder(error_of_run());
  EXPECT_EQ(refused.find("in.txt:21: 3 workers ended with this request"), 0U) << refused;
  options_.skip_bad = true;
  options_.restart = true;
  EXPECT_EQ(run_well().progress.bad_count, 1U);
  EXPECT_EQ(lines()[20]["text"], nullptr);
  EXPECT_EQ(lines()[39]["text"], counted_reply('a'));
}

TEST_F(RepliesTest, RepliesSurviveTheirWorkers) {
  std::string prompts;
  for (int i = 0; i < 120; ++i) prompts += static_cast<char>('a' + i * 5 % 26) + std::string("\n");
  write_input("in.txt", prompts);
  const auto undisturbed = undisturbed_bytes();
  for (const auto* words : {"kill_after=50", "die_after=97"}) {
    SCOPED_TRACE(words);
    order(words);
    const auto report = run_well();
    EXPECT_GT(report.progress.devices[0].restart_count, 0U);
    EXPECT_TRUE(output() == undisturbed);
  }
}

TEST_F(RepliesTest, WhatNoDeviceCanLoadEndsTheRun) {
  write_input("in.txt", "a\n");
  order("fail_load");
  EXPECT_EQ(error_of_run(), "told not to load");
  order("die_at_load");
  EXPECT_NE(error_of_run().find("its worker ended with signal 6"), std::string::npos);
  order("other_build");
  EXPECT_NE(error_of_run().find("is of another build"), std::string::npos);
  EXPECT_FALSE(exists(files_.journal));
  EXPECT_FALSE(exists(files_.lock));
}

TEST_F(RepliesTest, AModelThatChangesMeanwhileGivesNoOutput) {
  std::string prompts;
  for (int i = 0; i < 3000; ++i) prompts += "a\n";
  write_input("in.txt", prompts);
  bool has_changed = false;
  const auto report = run([&] {
    if (computed_count() > 0 && !has_changed) {
      has_changed = true;
      std::ofstream(options_.source / "generation_config.json") << "{}";
    }
    return false;
  });
  ASSERT_TRUE(has_changed);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(without_folder(report.error().message),
            "model has changed while it was used: replies may be of either model, and none is "
            "kept; run again");
  EXPECT_FALSE(exists(options_.out));
  EXPECT_FALSE(exists(files_.journal));
  EXPECT_FALSE(exists(files_.out_part));
}

// Its context tells that a worker which is started later has loaded another one.
TEST_F(RepliesTest, AnotherModelAtARestartEndsTheRunWithoutAWordOfAServer) {
  write_input("in.txt", "a\na\na\n");
  options_.devices.resize(1);
  order("die_after=30");
  const auto report = run([&] {
    if (!phases_.empty() && phases_.back() == "loading the model") order("length_max=50");
    return false;
  });
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(without_folder(report.error().message),
            "model has changed since it was loaded first, and the replies of a run must be of one "
            "model");
  EXPECT_FALSE(exists(files_.journal)) << "no reply was finished";
}

// One of the same sizes: its worker loads, and its canary alone shows that it is another.
TEST_F(RepliesTest, AModelThatHasChangedIsToldInPlaceOfAWrongCanary) {
  write_input("in.txt", "a\na\na\n");
  options_.devices.resize(1);
  order("die_after=30");
  bool has_changed = false;
  const auto report = run([&] {
    if (!has_changed && !phases_.empty() && phases_.back() == "loading the model") {
      has_changed = true;
      std::ofstream(options_.source / "config.json", std::ios::app) << " ";
      order("wrong_canary");
    }
    return false;
  });
  ASSERT_TRUE(has_changed);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(without_folder(report.error().message),
            "model has changed since it was loaded first, and the replies of a run must be of one "
            "model");
  EXPECT_NE(notices_.find("it gave a wrong answer to its canary"), std::string::npos) << notices_;
}

TEST_F(RepliesTest, AModelWhoseNumbersAreNoneIsNamed) {
  write_input("in.txt", "a\n");
  for (const auto& [words, message] :
       {std::pair("nan_canary", "model: the model's logits are not finite numbers"),
        std::pair("nan_at=2",
                  "in.txt:1: model: the model's logits are not finite numbers; "
                  "--skip-bad goes on without such records")}) {
    SCOPED_TRACE(words);
    order(words);
    const auto report = run();
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().kind, ErrorKind::Corrupt);
    EXPECT_EQ(without_folder(report.error().message), message);
  }
}

TEST_F(RepliesTest, AnEmptyInputGivesAnEmptyOutputButReplacesNone) {
  write_input("in.txt", "");
  EXPECT_EQ(run_well().progress.text_count, 0U);
  EXPECT_EQ(output(), "");
  EXPECT_NE(notices_.find("there is no prompt in the input: " + options_.out.string() +
                          " has no replies"),
            std::string::npos)
      << notices_;
  EXPECT_EQ(without_folder(error_of_run()),
            "there is no prompt in the input, so out.jsonl is left as it is: remove it first if it "
            "is to have no replies");
}

TEST_F(RepliesTest, GoesToAStreamInInputOrder) {
  write_input("in.txt", "x\na\n");
  std::string written;
  options_.stream = CorpusStream{.name = "standard output",
                                 .write = [&](std::string_view part) -> Status {
                                   written += part;
                                   return Done{};
                                 },
                                 .flush = []() -> Status { return Done{}; }};
  EXPECT_EQ(run_well().out, "standard output");
  const auto first = Json::parse(written.substr(0, written.find('\n')));
  EXPECT_EQ(first["text"], counted_reply('x'));
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 2);
  EXPECT_FALSE(exists(options_.out));
  options_.resume = true;
  EXPECT_EQ(error_of_run(),
            "standard output keeps nothing that --resume could find: name a file with -o");
}

// 2 (keys and values) x 64 layers x 64 heads x 512 x 2 bytes = 8 MiB a token. A quarter of 2 GiB
// are 64 of them; beside 1.75 GiB of weights 256 MiB are left, which are 32.
TEST_F(RepliesTest, TheWeightsLeaveLessForKeysAndValues) {
  const auto file = options_.source / "config.json";
  auto config = Json::parse(*read_file(file));
  config["num_hidden_layers"] = config["num_attention_heads"] = 64;
  config["num_key_value_heads"] = 64;
  config["head_dim"] = 512;
  config["hidden_size"] = 64 * 512;
  std::ofstream(file) << config.dump();
  write_input("in.txt", "a\n");
  const auto context = [&](std::uint64_t weights_bytes) {
    options_.memory = {.free_bytes = std::uint64_t{2} << 30U, .other_bytes = weights_bytes};
    run_well();
    const auto record = read_output_record(files_.about);
    for (const auto& [name, value] : record->identity) {
      if (name == "the context") return value;
    }
    return std::string("not told");
  };
  EXPECT_EQ(context(0), "64");
  EXPECT_EQ(context((std::uint64_t{7} << 30U) / 4), "32");
}

}  // namespace
}  // namespace muster
