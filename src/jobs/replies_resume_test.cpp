// Runs that are interrupted, find a full disk or somebody's files, and go on: what was finished is
// there for the next run, and the output is that of an undisturbed one.

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "base/file.h"
#include "base/full_disk_fixture.h"
#include "dataset/run_journal.h"
#include "jobs/finished_output.h"
#include "jobs/replies_fixture.h"

namespace muster {
namespace {

class RepliesResumeTest : public RepliesFixture {
 protected:
  RepliesResumeTest() : RepliesFixture("replies_resume", 2) {}

  // The first one holds the token at which a worker stops, told so. Of the others each of `every`
  // in turn reads `other` instead of as usual, if there is one.
  void write_prompts(int count, const std::string& first = "why?", const std::string& other = "",
                     int every = 1) {
    std::string prompts = first + "\n";
    for (int i = 1; i < count; ++i) {
      const auto usual = std::string(1 + i % 3, 'b') + static_cast<char>('a' + i * 7 % 26);
      prompts += (other.empty() || i % every != 1 % every ? usual : other) + "\n";
    }
    write_input("in.txt", prompts);
  }

  std::uint64_t kept() const {
    const auto count = kept_record_count(files_);
    EXPECT_TRUE(count) << count.error().message;
    return count ? *count : 0;
  }

  // A run that is interrupted when so many replies were finished; none of them can be written.
  std::uint64_t interrupt_at(std::uint64_t count) {
    order("hang_on=40");
    const auto stopped = run([&] { return computed_count() >= count; });
    order("");
    EXPECT_FALSE(stopped);
    EXPECT_EQ(stopped.error().kind, ErrorKind::Cancelled) << stopped.error().message;
    EXPECT_EQ(last_.text_count, 0U);
    return kept();
  }

  Result<RepliesReport> run_on_full_disk(std::uint64_t file_size) {
    const FullDisk disk(file_size);
    return run();
  }

  /// No flag, --resume, --restart: each is refused with this sentence and touches nothing.
  void expect_refused(const std::string& sentence, const std::filesystem::path& stays) {
    const auto before = *read_file(stays);
    for (const int flag : {0, 1, 2}) {
      SCOPED_TRACE(flag);
      options_.resume = flag == 1;
      options_.restart = flag == 2;
      const auto refused = run();
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
      EXPECT_EQ(refused.error().message, sentence);
      EXPECT_EQ(*read_file(stays), before);
    }
    options_.resume = options_.restart = false;
  }
};

TEST_F(RepliesResumeTest, WhatWasFinishedBeforeItsTurnIsNotComputedAgain) {
  constexpr std::uint64_t kPrompts = 300;
  write_prompts(kPrompts);
  const auto undisturbed = undisturbed_bytes();
  const auto kept_count = interrupt_at(100);
  EXPECT_GE(kept_count, 100U);
  options_.resume = true;
  const auto report = run_well();
  EXPECT_EQ(report.progress.resumed_count, kept_count);
  EXPECT_EQ(report.progress.text_count, kPrompts - kept_count);
  EXPECT_EQ(computed_count(), kPrompts - kept_count);
  EXPECT_TRUE(output() == undisturbed);
  for (const auto& path : {files_.ahead, files_.ahead_part, files_.journal, files_.out_part}) {
    EXPECT_FALSE(exists(path)) << path;
  }
}

// Which is not what a measurement may say now.
TEST_F(RepliesResumeTest, ThePrecisionOfTheRunBeforeIsKnown) {
  write_prompts(200);
  options_.precision = DecoderPrecision::Fp32;
  interrupt_at(50);
  options_.precision = DecoderPrecision::Own;
  EXPECT_EQ(earlier_precision(options_), std::nullopt) << "it is not to go on";
  options_.resume = true;
  EXPECT_EQ(earlier_precision(options_), DecoderPrecision::Fp32);
  options_.precision = DecoderPrecision::Fp32;
  run_well();
  EXPECT_EQ(earlier_precision(options_), DecoderPrecision::Fp32) << "of one that is finished";
  std::filesystem::remove(files_.about);
  EXPECT_EQ(earlier_precision(options_), std::nullopt);
}

TEST_F(RepliesResumeTest, ASecondInterruptLosesNothingOfTheFirst) {
  write_prompts(300);
  const auto undisturbed = undisturbed_bytes();
  const auto first = interrupt_at(60);
  options_.resume = true;
  const auto second = interrupt_at(1);
  EXPECT_GT(second, first);
  EXPECT_EQ(run_well().progress.resumed_count, second);
  EXPECT_TRUE(output() == undisturbed);
}

TEST_F(RepliesResumeTest, UnfinishedWorkIsDroppedByRestartAlone) {
  write_prompts(200);
  const auto kept_count = interrupt_at(50);
  EXPECT_EQ(error_of_run(), options_.out.string() +
                                " is there unfinished: go on with --resume, or drop it and start "
                                "anew with --restart");
  EXPECT_EQ(kept(), kept_count);
  options_.restart = true;
  const auto report = run_well();
  EXPECT_EQ(report.progress.resumed_count, 0U);
  EXPECT_EQ(report.progress.text_count, 200U);
}

TEST_F(RepliesResumeTest, AReplyIsNotUsedForAnotherPrompt) {
  write_prompts(200, "why?", "other");
  const auto undisturbed = undisturbed_bytes();
  write_prompts(200);
  // Which of them are kept is a matter of time.
  EXPECT_GE(interrupt_at(150), 150U);
  write_prompts(200, "why?", "other");
  options_.resume = true;
  EXPECT_EQ(run_well().progress.resumed_count, 0U);
  EXPECT_TRUE(output() == undisturbed);
}

TEST_F(RepliesResumeTest, WhatStandsBesideAChangedPromptIsUsed) {
  write_prompts(200, "why?", "other", 2);
  const auto undisturbed = undisturbed_bytes();
  write_prompts(200);
  const auto kept_count = interrupt_at(150);
  write_prompts(200, "why?", "other", 2);
  options_.resume = true;
  const auto report = run_well();
  // A hundred changed, and the first of the others was not finished.
  EXPECT_GE(report.progress.resumed_count + 100, kept_count);
  EXPECT_LE(report.progress.resumed_count, 99U);
  EXPECT_EQ(computed_count(), 200 - report.progress.resumed_count);
  EXPECT_TRUE(output() == undisturbed);
}

TEST_F(RepliesResumeTest, AChangedOptionIsRefusedByName) {
  write_prompts(200);
  interrupt_at(50);
  options_.resume = true;
  const auto refusal = [&](auto change) {
    const auto before = options_;
    change(options_);
    auto message = error_of_run();
    options_ = before;
    return message;
  };
  const std::string start = "cannot resume out.jsonl.journal: ";
  EXPECT_EQ(refusal([](auto& options) { options.token_limit = 7; }),
            start + "--max-tokens was 512 and is now 7");
  EXPECT_EQ(refusal([](auto& options) { options.system = "s"; }),
            start + "--system was none and is now \"s\"");
  EXPECT_EQ(refusal([](auto& options) { options.system = "none"; }),
            start + "--system was none and is now \"none\"");
  EXPECT_EQ(refusal([](auto& options) { options.sampling.temperature = 0.5; }),
            start + "--temperature was 0 and is now 0.5");
  EXPECT_EQ(refusal([](auto& options) { options.precision = DecoderPrecision::Fp32; }),
            start + "--precision was own and is now fp32");
  EXPECT_EQ(refusal([](auto& options) { options.kv_cache_dtype = KvCacheDtype::Int8; }),
            start + "--kv-cache-dtype was not set and is now int8");
  std::ofstream(options_.source / "generation_config.json") << "{}";
  EXPECT_NE(error_of_run().find("the model was "), std::string::npos);
  std::filesystem::remove(options_.source / "generation_config.json");
  options_.sampling.seed = 99;  // nothing is drawn
  options_.skip_bad = true;     // none was bad so far
  run_well();
}

TEST_F(RepliesResumeTest, OneStopTextIsNotTwo) {
  options_.stops = {"e, a"};
  write_prompts(200);
  interrupt_at(50);
  options_.resume = true;
  options_.stops = {"e", "a"};
  EXPECT_EQ(error_of_run(),
            "cannot resume out.jsonl.journal: --stop was [\"e, a\"] and is now [\"e\",\"a\"]");
}

TEST_F(RepliesResumeTest, TheSeedCountsWhereTokensAreDrawn) {
  options_.sampling.temperature = 0.5;
  options_.sampling.seed = 7;
  write_prompts(200);
  interrupt_at(50);
  options_.resume = true;
  options_.sampling.seed = 8;
  EXPECT_EQ(error_of_run(), "cannot resume out.jsonl.journal: --seed was 7 and is now 8");
}

// A template that shows the date, and memory that is free, are another at the second run.
TEST_F(RepliesResumeTest, GoesOnWithTheTimeAndTheContextThatItBeganWith) {
  std::ofstream(options_.source / "chat_template.jinja")
      << "{% for m in messages %}{{ m.content }}{% endfor %}"
         "{{ strftime_now('%Y')[:0] }}";
  write_prompts(200);
  const auto undisturbed = undisturbed_bytes();
  interrupt_at(50);
  const auto identity = RunJournal::read(files_.journal)->identity;
  options_.resume = true;
  options_.memory = {};
  run_well();
  EXPECT_TRUE(output() == undisturbed);
  const auto about = read_output_record(files_.about);
  EXPECT_EQ(about->identity, identity);
  EXPECT_TRUE(run_well().was_complete);
}

TEST_F(RepliesResumeTest, ResumingWhatIsFinishedComputesNothing) {
  write_prompts(30, "a");
  run_well();
  const auto before = output();
  options_.resume = true;
  options_.worker_program = "/nothing/here";  // not even started
  const auto report = run_well();
  EXPECT_TRUE(report.was_complete);
  EXPECT_EQ(report.progress.resumed_count, 30U);
  EXPECT_EQ(report.equality_class, "counting");
  EXPECT_TRUE(output() == before);
  options_.token_limit = 7;
  EXPECT_NE(error_of_run().find("it is finished, and --max-tokens was 512 and is now 7"),
            std::string::npos);
  options_.token_limit = 512;
  write_prompts(29, "a");
  EXPECT_NE(error_of_run().find("the input has changed since"), std::string::npos);
}

TEST_F(RepliesResumeTest, AFullDiskLeavesNoFinalNameAndCanBeResumed) {
  write_prompts(2000, "a");
  const auto undisturbed = undisturbed_bytes();
  for (const std::uint64_t size : {20'000U, 100'000U}) {
    SCOPED_TRACE(size);
    ASSERT_LT(size, undisturbed.size());
    options_.resume = false;
    const auto full = run_on_full_disk(size);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().kind, ErrorKind::ResourceExhausted) << full.error().message;
    // Whether a step was journalled before there was no room, a fast machine leaves to chance.
    const auto& told = full.error().message;
    EXPECT_TRUE(told.ends_with(" done: go on with --resume") ||
                told.ends_with("; nothing of the run is kept: begin it again"))
        << told;
    EXPECT_FALSE(exists(options_.out));
    options_.resume = true;
    run_well();
    EXPECT_TRUE(output() == undisturbed);
    std::filesystem::remove(options_.out);
    std::filesystem::remove(files_.about);
  }
}

TEST_F(RepliesResumeTest, NothingOfSomebodyElseIsReplaced) {
  write_prompts(3, "a");
  std::ofstream(options_.out) << "{\"text\":\"my own\"}\n";
  expect_refused(options_.out.string() +
                     ": is there, and no out.jsonl.run.json says that muster made it: remove it, "
                     "or name another output with -o",
                 options_.out);
  std::filesystem::remove(options_.out);
  for (const auto& path : {files_.about, files_.journal, files_.journal_part, files_.about_part,
                           files_.ahead, files_.ahead_part}) {
    SCOPED_TRACE(path);
    std::ofstream(path) << "my own\n";
    expect_refused(path.string() +
                       ": is there and no file of a run of muster's: remove it, or name another "
                       "output with -o",
                   path);
    std::filesystem::remove(path);
  }
  const std::string input = options_.input.inputs[0];
  std::filesystem::rename(input, folder_ / "in.jsonl");
  options_.input.inputs = {(folder_ / "in.jsonl").string()};
  options_.out = folder_ / "in.jsonl";
  EXPECT_NE(error_of_run().find("would be overwritten, and it is an input"), std::string::npos);
}

TEST_F(RepliesResumeTest, VectorsAreNotReplacedByReplies) {
  write_prompts(3, "a");
  OutputRecord record;
  record.vectors_size = 5;
  std::ofstream(files_.about) << output_record_json(record);
  std::ofstream(options_.out) << "[1,2]";
  expect_refused(options_.out.string() +
                     ": is there, and it holds vectors of muster embed: remove it, or name another "
                     "output with -o",
                 options_.out);
}

TEST_F(RepliesResumeTest, TheModelIsNotOverwritten) {
  write_prompts(3, "a");
  std::filesystem::create_hard_link(options_.source / "config.json", folder_ / "copy.jsonl");
  options_.out = folder_ / "copy.jsonl";
  EXPECT_NE(error_of_run().find("it is a file of the model"), std::string::npos);
  options_.out = folder_ / "copy.txt";
  EXPECT_EQ(error_of_run(), options_.out.string() +
                                ": replies are written as .jsonl, a line for each: name the "
                                "output so");
}

TEST_F(RepliesResumeTest, WhatMusterMadeIsReplaced) {
  write_prompts(3, "a");
  run_well();
  write_prompts(5, "b");
  EXPECT_EQ(run_well().progress.text_count, 5U);
}

// Workers die, runs are interrupted and go on, on one device or more: the bytes are the same.
TEST_F(RepliesResumeTest, HoweverItIsDisturbedTheOutputIsTheSame) {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string prompts;
    const auto count = 150 + random() % 150;
    for (std::size_t i = 0; i < count; ++i) {
      prompts += std::string(1 + random() % 20, 'q') + static_cast<char>('a' + random() % 26);
      prompts += random() % 9 == 0 ? "\n\n" : "\n";
    }
    write_input("in.txt", prompts);
    options_.resume = false;
    options_.sampling.temperature = random() % 2 == 0 ? 0 : 0.7;
    options_.devices.resize(1 + random() % 3);
    for (std::uint32_t i = 0; i < options_.devices.size(); ++i) options_.devices[i].index = i;
    order("");
    const auto undisturbed = undisturbed_bytes();
    bool is_done = false;
    for (int turn = 0; !is_done; ++turn) {
      options_.resume = turn > 0;
      order(turn > 3 ? "" : "kill_after=" + std::to_string(20 + random() % 200));
      const auto stop_at = turn > 3 ? UINT64_MAX : random() % 60;
      const auto outcome = run([&] { return computed_count() > stop_at; });
      if (!outcome) {
        ASSERT_EQ(outcome.error().kind, ErrorKind::Cancelled) << outcome.error().message;
      }
      is_done = outcome.has_value();
    }
    EXPECT_TRUE(output() == undisturbed);
    std::filesystem::remove(options_.out);
    std::filesystem::remove(files_.about);
  }
}

}  // namespace
}  // namespace muster
