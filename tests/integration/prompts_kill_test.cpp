// muster generate --prompts: the program itself is killed, by kill -9 and by Ctrl-C, at several
// moments of a run, and goes on with --resume each time; the result must be the lines of an
// undisturbed run, and no worker may be left. The workers count (stand_ins/counting_worker).

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "coordinator/decoder_fixture.h"
#include "dataset/run_journal.h"
#include "integration/killed_runs.h"
#include "integration/program.h"
#include "jobs/replies_ahead.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class PromptRuns {
 protected:
  PromptRuns()
      : folder_(fs::path(testing::TempDir()) / ("prompts_kill." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    write_counting_decoder(folder_ / "model");
    // What `--torch-root` looks for; the test worker needs no torch.
    fs::create_directories(folder_ / "torch/lib");
    std::ofstream(folder_ / "torch/lib/libtorch_cpu.so").flush();
    std::ofstream(folder_ / "torch/version.py") << "__version__ = '2.11.0+cpu'\n";
  }
  ~PromptRuns() {
    ::unsetenv("COUNTING_WORKER");
    fs::remove_all(folder_);
  }

  /// As soon as its log has `mark`.
  void interrupt_at(const Program& program, const std::string& mark) const {
    while (log().find(mark) == std::string::npos && !ends_within(program.pidfd(), 5)) {
    }
    ::kill(program.pid(), SIGINT);
  }

  Program run(const std::string& out, bool resume, const std::string& orders = "",
              const std::vector<std::string>& more = {"--quiet"}) const {
    ::setenv("COUNTING_WORKER", orders.c_str(), 1);
    std::vector<std::string> words{std::string(MUSTER_BINARY_DIR) + "/bin/muster",
                                   "generate",
                                   (folder_ / "model").string(),
                                   "--prompts",
                                   (folder_ / "in.txt").string(),
                                   "-o",
                                   (folder_ / out).string(),
                                   "--devices",
                                   "2xcpu",
                                   "--temperature",
                                   "0.5",
                                   "--cache-dir",
                                   (folder_ / "cache").string(),
                                   "--worker-program",
                                   counting_worker().string(),
                                   "--torch-root",
                                   (folder_ / "torch").string()};
    words.insert(words.end(), more.begin(), more.end());
    if (resume) words.emplace_back("--resume");
    return {words, (folder_ / "log").string()};
  }

  std::string lines_of(const std::string& out) const { return *read_file(folder_ / out); }
  std::string log() const { return *read_file(folder_ / "log"); }

  const fs::path folder_;
};

class PromptsKillTest : public PromptRuns, public testing::TestWithParam<int> {};

TEST_P(PromptsKillTest, GoesOnWithTheSameLinesAndLeavesNoWorker) {
  {
    std::ofstream input(folder_ / "in.txt");
    for (int i = 0; i < 4000; ++i) {
      input << std::string(static_cast<std::size_t>(1 + i % 9), 'q')
            << static_cast<char>('a' + i * 7 % 26) << "\n";
    }
  }
  const KilledRuns runs{.run = [&](bool resume) { return run("killed.jsonl", resume); },
                        .signal_number = GetParam(),
                        .attempts_most = 6,
                        .is_complete = [&] { return fs::exists(folder_ / "killed.jsonl"); },
                        .remove_output =
                            [&] {
                              for (const char* name : {"killed.jsonl", "killed.jsonl.run.json"})
                                fs::remove(folder_ / name);
                            }};
  EXPECT_EQ(run_until_it_ends(runs, [&] { return run("whole.jsonl", false).wait(); }), 0) << log();
  EXPECT_TRUE(lines_of("killed.jsonl") == lines_of("whole.jsonl"));
}

// The first prompt stops the worker that has it, and the other one computes what is behind it.
// Once the reply to prompt 200 is there before its turn, the run is killed.
class PromptsAheadKillTest : public PromptRuns, public testing::Test {
 protected:
  bool is_ahead(std::uint64_t count) const {
    const auto journal = RunJournal::read(folder_ / "out.jsonl.journal");
    if (!journal) return false;
    const auto found = count_ahead_replies(folder_ / "out.jsonl.ahead",
                                           identity_hash(journal->identity), /*record_count=*/200);
    return found && *found >= count;
  }
};

TEST_F(PromptsAheadKillTest, WhatWasFinishedBeforeItsTurnIsNotComputedAgain) {
  {
    std::ofstream input(folder_ / "in.txt");
    input << "why?\n";
    for (int i = 1; i < 300; ++i) input << (i == 200 ? "z\n" : "a\n");  // "z" is the token 26
  }
  ASSERT_EQ(run("out.jsonl", false).wait(), 0) << log();
  const auto undisturbed = lines_of("out.jsonl");
  for (const char* name : {"out.jsonl", "out.jsonl.run.json"}) fs::remove(folder_ / name);
  {
    const Program program = run("out.jsonl", false, "hang_on=40");
    while (!is_ahead(100) && !ends_within(program.pidfd(), 1)) {
    }
    ::kill(program.pid(), SIGKILL);
    program.wait();
  }
  ASSERT_TRUE(is_ahead(100)) << log();
  // Whoever is asked for that prompt again dies of it.
  EXPECT_EQ(run("out.jsonl", true, "poison=26").wait(), 0) << log();
  EXPECT_TRUE(lines_of("out.jsonl") == undisturbed);
  EXPECT_FALSE(fs::exists(folder_ / "out.jsonl.ahead"));
}

// A model with weights is measured before anything is computed.
class PromptsMeasuredTest : public PromptRuns, public testing::Test {
 protected:
  PromptsMeasuredTest() {
    const auto weights = fs::path(MUSTER_SOURCE_DIR) / "src/engine/testdata/decoders/llama";
    for (const auto* name : {"config.json", "model.safetensors"}) {
      fs::copy_file(weights / name, folder_ / "model" / name, fs::copy_options::overwrite_existing);
    }
    std::ofstream(folder_ / "in.txt") << "a\n";
  }
};

TEST_F(PromptsMeasuredTest, AfterCtrlCItSaysThatNothingIsKept) {
  const Program program = run("out.jsonl", false, "hang_at_probe", {});
  interrupt_at(program, "measuring which precision");
  EXPECT_EQ(program.wait(), 128 + SIGINT);
  EXPECT_NE(
      log().find("muster: stopped before a reply was finished; nothing of this run is kept\n"),
      std::string::npos)
      << log();
  EXPECT_EQ(run("out.jsonl", true, "").wait(), 0) << log();
}

TEST_F(PromptsMeasuredTest, WhatStandsInTheWayIsToldBeforeAnythingIsMeasured) {
  std::ofstream(folder_ / "mine.jsonl") << "a poem\n";
  const auto refused = [&](const std::string& out, bool resume,
                           const std::vector<std::string>& more) {
    EXPECT_EQ(run(out, resume, "", more).wait(), 2);
    EXPECT_EQ(log().find("measuring"), std::string::npos) << log();
    return log();
  };
  EXPECT_NE(refused("mine.jsonl", false, {}).find("mine.jsonl"), std::string::npos);
  EXPECT_EQ(lines_of("mine.jsonl"), "a poem\n");
  EXPECT_NE(
      refused("out.jsonl", true, {"--restart"}).find("--resume and --restart exclude each other"),
      std::string::npos);
  EXPECT_EQ(run("out.jsonl", false, "", {}).wait(), 0) << log();
  EXPECT_NE(log().find("measuring"), std::string::npos) << log();
}

INSTANTIATE_TEST_SUITE_P(Signals, PromptsKillTest, testing::Values(SIGKILL, SIGINT));

}  // namespace
}  // namespace muster
