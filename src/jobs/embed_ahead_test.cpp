// Runs whose first text keeps all others waiting: a worker stops at it, another computes what is
// behind it, and the run is interrupted. What was computed must be there for the next run.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/full_disk_fixture.h"
#include "dataset/ahead_file.h"
#include "dataset/run_journal.h"
#include "dataset/vector_file.h"
#include "jobs/embed_fixture.h"
#include "jobs/finished_output.h"
#include "jobs/run_output.h"

namespace muster {
namespace {

constexpr std::uint64_t kLines = 3000;  // all of them wait in the window

class EmbedAheadTest : public EchoEmbedFixture {
 protected:
  EmbedAheadTest() : EchoEmbedFixture("embed_ahead", 2), files_(options_.out) {}

  // Only the first line has the word at which a worker stops.
  void write_lines(const std::string& of_1500 = "text 1500") {
    std::string text = "the the the the the the the the the the the the\n";
    for (std::uint64_t i = 1; i < kLines; ++i) {
      text += i == 1500 ? of_1500 : "text " + std::to_string(i * 7919 % 10'007);
      text += '\n';
    }
    write_input("in.txt", text);
  }

  std::string undisturbed_bytes() {
    EXPECT_TRUE(run());
    auto bytes = output_bytes();
    for (const auto& path : {files_.out, files_.index, files_.about}) {
      std::filesystem::remove(path);
    }
    return bytes;
  }

  std::uint64_t computed_count() const {
    std::uint64_t count = 0;
    for (const auto& device : last_.devices) count += device.text_count;
    return count;
  }

  // How many records a run that is stopped so keeps; none of its rows can be written.
  std::uint64_t interrupt_when(const std::function<bool()>& is_time) {
    // "the" is the last of the 80 tokens.
    ::setenv("ZERO_WORKER", (worker_ + " hang_on=79").c_str(), 1);
    last_ = {};
    const auto stopped = run(is_time);
    ::setenv("ZERO_WORKER", worker_.c_str(), 1);
    EXPECT_FALSE(stopped);
    EXPECT_EQ(stopped.error().kind, ErrorKind::Cancelled) << stopped.error().message;
    EXPECT_EQ(last_.text_count, 0U);
    const auto kept_count = kept_record_count(RunFiles(options_.out));
    EXPECT_TRUE(kept_count) << kept_count.error().message;
    last_ = {};
    return kept_count ? *kept_count : 0;
  }

  // Progress is told ten times a second, so it may be many more.
  std::uint64_t interrupt_at(std::uint64_t count) {
    return interrupt_when([this, count] { return computed_count() >= count; });
  }

  const RunFiles files_;
  std::string worker_ = "echo";  // its orders
};

TEST_F(EmbedAheadTest, WhatWasComputedBeforeItsTurnIsNotComputedAgain) {
  write_lines();
  for (const char* name : {"out.npy", "out.safetensors", "out.jsonl"}) {
    SCOPED_TRACE(name);
    options_.out = folder_ / name;
    options_.resume = false;
    ASSERT_TRUE(run());
    const auto undisturbed = output_bytes();
    const auto kept_count = interrupt_at(2000);
    EXPECT_GE(kept_count, 2000U);
    options_.resume = true;
    const auto report = run();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->progress.resumed_count, kept_count);
    EXPECT_EQ(report->progress.text_count, kLines - kept_count);
    EXPECT_EQ(computed_count(), kLines - kept_count);
    EXPECT_TRUE(output_bytes() == undisturbed);
    EXPECT_FALSE(std::filesystem::exists(RunFiles(options_.out).ahead));
  }
}

TEST_F(EmbedAheadTest, IsUnfinishedWorkThatNothingButRestartDrops) {
  write_lines();
  const auto kept_count = interrupt_at(2000);
  EXPECT_GE(kept_count, 2000U);
  EXPECT_EQ(run().error().message, options_.out.string() +
                                       " is there unfinished: go on with --resume, or drop it and "
                                       "start anew with --restart");
  EXPECT_EQ(*kept_record_count(files_), kept_count);
  options_.restart = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.resumed_count, 0U);
  EXPECT_EQ(computed_count(), kLines);
}

TEST_F(EmbedAheadTest, ASecondInterruptLosesNothingOfTheFirst) {
  write_lines();
  const auto undisturbed = undisturbed_bytes();
  const auto first = interrupt_at(2000);
  options_.resume = true;
  const auto second = interrupt_when([this] { return last_.resumed_count > 0; });
  EXPECT_GE(second, first);
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.resumed_count, second);
  EXPECT_TRUE(output_bytes() == undisturbed);
}

TEST_F(EmbedAheadTest, ARowIsNotUsedForAnotherText) {
  write_lines("another text");
  const auto undisturbed = undisturbed_bytes();
  write_lines();
  const auto kept_count = interrupt_at(2800);
  const auto run_of_it = identity_hash(RunJournal::read(files_.journal)->identity);
  ASSERT_TRUE((*AheadFile::reopen(files_.ahead, run_of_it, 0))->has(1500));
  write_lines("another text");
  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.resumed_count, kept_count - 1);
  EXPECT_TRUE(output_bytes() == undisturbed);
}

TEST_F(EmbedAheadTest, AChangedSettingIsRefusedByName) {
  write_lines();
  interrupt_at(1000);
  options_.resume = true;
  options_.length_max = 16;
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--max-length was 32 and is now 16"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(std::filesystem::exists(files_.ahead));
}

TEST_F(EmbedAheadTest, AFileWithoutAJournalIsNotTaken) {
  write_lines();
  for (const bool resume : {false, true}) {
    options_.resume = resume;
    ASSERT_TRUE(write_file_atomically(files_.ahead, "MSTAHEAD"));
    const auto refused = run();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(refused.error().message, options_.out.string() +
                                           " has an .ahead file beside it and no journal to go on "
                                           "by: --restart drops it and starts anew");
    EXPECT_EQ(*read_file(files_.ahead), "MSTAHEAD");
  }
}

// The output may have room where rows ahead of it have none, so it must be possible to finish it.
TEST_F(EmbedAheadTest, NoRoomForThemIsToldOnceAndKeepsTheRunFromNothing) {
  worker_ = "echo dim=64";
  ::setenv("ZERO_WORKER", worker_.c_str(), 1);
  write_lines();
  const auto undisturbed = undisturbed_bytes();
  // Rows take 56 + 4 * 64 = 312 bytes ahead and 256 in the output, which is 768,128 bytes at last.
  const FullDisk disk(800'000);
  notices_.clear();
  const auto sentence = files_.ahead.string() +
                        ": cannot write: File too large; the run goes on, but --resume may find "
                        "fewer of the rows that wait for their turn\n";
  // Until the step behind the one at which it was told.
  std::optional<std::size_t> told_at;
  const auto kept_count = interrupt_when([&] {
    if (notices_.find(sentence) == std::string::npos) return false;
    const auto step_count = RunJournal::read(files_.journal)->steps.size();
    if (!told_at) told_at = step_count;
    return step_count > *told_at;
  });
  EXPECT_EQ(notices_.find(sentence), notices_.rfind(sentence));
  options_.resume = true;
  const auto report = run();
  EXPECT_EQ(kept_count, 2563U);  // (800,000 - 56) / 312
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.resumed_count, kept_count);
  EXPECT_TRUE(output_bytes() == undisturbed);
}

// It was killed before it kept anything: its journal has no step, and its file no whole head.
TEST_F(EmbedAheadTest, WhatAKilledRunLeftBesideAFinishedOutputGoesWithResume) {
  write_input("in.txt", "text\n");
  const auto finished = undisturbed_bytes();
  ASSERT_TRUE(run());
  ASSERT_TRUE(RunJournal::create(files_.journal, {{"the model", "another"}}));
  const std::filesystem::path left[] = {files_.ahead, files_.out_part, files_.index_part,
                                        files_.about_part, files_.journal_part};
  for (const auto& path : left) ASSERT_TRUE(write_file_atomically(path, ""));
  ASSERT_TRUE(write_file_atomically(files_.ahead, "MSTAHEAD"));
  options_.resume = true;
  options_.worker_program = "/nothing/here";  // not even started
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->was_complete);
  EXPECT_TRUE(output_bytes() == finished);
  EXPECT_FALSE(std::filesystem::exists(files_.journal));
  for (const auto& path : left) EXPECT_FALSE(std::filesystem::exists(path)) << path;
}

// It is wrong before any other is written. Those behind it were not computed in vain.
TEST_F(EmbedAheadTest, ATextThatCannotBeComputedKeepsTheOthersUntilItIsMended) {
  const auto lines = [](const std::string& first) {
    std::string text = first + "\n";
    for (std::uint64_t i = 1; i < kLines; ++i) text += "text " + std::to_string(i) + "\n";
    return text;
  };
  write_input("in.txt", lines("mended"));
  const auto undisturbed = undisturbed_bytes();
  write_input("in.txt", lines("the"));
  ::setenv("ZERO_WORKER", "echo nan_on=79", 1);
  const auto failed = run();
  ::setenv("ZERO_WORKER", "echo", 1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::Unsupported);
  EXPECT_NE(failed.error().message.find("in.txt:1: the vector of this text is not finite"),
            std::string::npos)
      << failed.error().message;
  const auto kept_count = std::filesystem::exists(files_.journal) ? *kept_record_count(files_) : 0;
  write_input("in.txt", lines("mended"));
  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.resumed_count, kept_count);
  EXPECT_TRUE(output_bytes() == undisturbed);
  EXPECT_FALSE(std::filesystem::exists(files_.ahead));
}

TEST_F(EmbedAheadTest, ATextThatIsSkippedInTheEndLeavesNoFile) {
  write_lines();
  options_.skip_bad = true;
  ::setenv("ZERO_WORKER", "echo abort_on=79", 1);  // in the first line alone
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->progress.text_count, kLines - 1);
  EXPECT_EQ(report->progress.bad_count, 1U);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.is_regular_file()) names.insert(entry.path().filename().string());
  }
  EXPECT_EQ(names, (std::set<std::string>{"in.txt", "out.npy", "out.npy.index.jsonl",
                                          "out.npy.run.json"}));
}

TEST_F(EmbedAheadTest, RowsOfAnotherSizeAreRefused) {
  write_lines();
  interrupt_at(1000);
  ::setenv("ZERO_WORKER", "echo dim=16", 1);
  options_.resume = true;
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(refused.error().message,
            files_.ahead.string() +
                ": rows of 8 values, and the model gives 16: start anew with --restart");
}

TEST_F(EmbedAheadTest, ASkippedRecordAmongThemStaysWhereItIs) {
  std::string text = "{\"text\": \"the the the the the the the the the\"}\n";
  for (std::uint64_t i = 1; i < kLines; ++i) {
    text += i % 7 == 0 ? "{\"text\": 3}\n" : "{\"text\": \"text " + std::to_string(i) + "\"}\n";
  }
  write_input("in.jsonl", text);
  options_.skip_bad = true;
  const auto undisturbed = undisturbed_bytes();
  interrupt_at(2000);
  options_.resume = true;
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GE(report->progress.resumed_count, 2000U);
  EXPECT_EQ(report->progress.bad_count, 428U);  // multiples of 7 below 3000
  EXPECT_TRUE(output_bytes() == undisturbed);
}

}  // namespace
}  // namespace muster
