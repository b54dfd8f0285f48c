// The muster program itself is killed, by kill -9 and by Ctrl-C, at ten moments of a run, and goes
// on with
// --resume each time; the result must be the bytes of an undisturbed run, and no worker may be
// left.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "dataset/ahead_file.h"
#include "dataset/run_journal.h"
#include "integration/killed_runs.h"
#include "integration/program.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

class EmbedRuns {
 protected:
  EmbedRuns()
      : folder_(fs::path(testing::TempDir()) / ("embed_kill." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    ::setenv("ZERO_WORKER", "echo dim=64", 1);
    // What `--torch-root` looks for; the test worker needs no torch.
    fs::create_directories(folder_ / "torch/lib");
    std::ofstream(folder_ / "torch/lib/libtorch_cpu.so").flush();
    std::ofstream(folder_ / "torch/version.py") << "__version__ = '2.11.0+cpu'\n";
    std::ofstream input(folder_ / "in.txt");
    for (int i = 0; i < 60'000; ++i)
      input << "text " << i * 7919LL % 100'003 << " the text " << i % 13 << "\n";
  }
  ~EmbedRuns() {
    ::unsetenv("ZERO_WORKER");
    fs::remove_all(folder_);
  }

  Program run(const std::string& out, bool resume, const std::string& input = "in.txt") const {
    return {words_of(out, resume, input), (folder_ / "log").string()};
  }

  std::vector<std::string> words_of(const std::string& out, bool resume, const std::string& input,
                                    const std::string& flag = "") const {
    std::vector<std::string> words{std::string(MUSTER_BINARY_DIR) + "/bin/muster",
                                   "embed",
                                   std::string(MUSTER_SOURCE_DIR) + "/tests/models/tiny",
                                   input == "-" ? input : (folder_ / input).string(),
                                   "-o",
                                   (folder_ / out).string(),
                                   "--devices",
                                   device_words_,
                                   "--precision",
                                   "fp32",
                                   "--quiet",
                                   "--worker-program",
                                   std::string(MUSTER_BINARY_DIR) + "/bin/zero_worker",
                                   "--torch-root",
                                   (folder_ / "torch").string(),
                                   "--cache-dir",
                                   (folder_ / "cache").string()};
    if (input.ends_with(".jsonl")) {
      for (const auto* word : {"--id-field", "id", "--keep", "meta.year", "--keep", "tags"}) {
        words.emplace_back(word);
      }
    }
    if (resume) words.emplace_back("--resume");
    if (!flag.empty()) words.push_back(flag);
    return words;
  }

  // Of every record some of the fields that are kept.
  void write_records() const {
    std::ofstream input(folder_ / "in.jsonl");
    for (int i = 0; i < 60'000; ++i) {
      input << R"({"id":)" << i << R"(,"text":"text )" << i * 7919LL % 100'003 << '"';
      if (i % 3 != 0) input << R"(,"meta":{"year":)" << 1990 + i % 40 << '}';
      if (i % 5 == 0) input << R"(,"tags":["a","b )" << i % 11 << R"("])";
      input << "}\n";
    }
  }

  std::string bytes_of(const std::string& stem) const {
    return *read_file(folder_ / (stem + ".npy")) +
           *read_file(folder_ / (stem + ".npy.index.jsonl"));
  }

  const fs::path folder_;
  std::string device_words_ = "1xcpu";
};

struct KilledRun {
  int signal_number;
  const char* input;
};

class EmbedKillTest : public EmbedRuns, public testing::TestWithParam<KilledRun> {};
class EmbedStdinTest : public EmbedRuns, public testing::Test {
 protected:
  // A run that reads a pipe whose writer is open and silent behind its first lines.
  struct PipedRun {
    UniqueFd writing;
    Program program;
  };

  PipedRun run_of_pipe(const std::string& out) const {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd reading(ends[0]);
    UniqueFd writing(ends[1]);
    const UniqueFd before(::dup(STDIN_FILENO));
    ::dup2(reading.get(), STDIN_FILENO);
    Program program = run(out, false, "-");
    ::dup2(before.get(), STDIN_FILENO);
    // More than a pipe holds: once it is written, the program is at its input and has its output.
    const std::string lines = repeated("a text of no weight\n", 10'000);
    EXPECT_EQ(::write(writing.get(), lines.data(), lines.size()),
              static_cast<ssize_t>(lines.size()));
    return {std::move(writing), std::move(program)};
  }
};

TEST_P(EmbedKillTest, GoesOnWithTheSameBytesAndLeavesNoWorker) {
  const std::string input = GetParam().input;
  if (input == "in.jsonl") write_records();
  const KilledRuns runs{.run = [&](bool resume) { return run("killed.npy", resume, input); },
                        .signal_number = GetParam().signal_number,
                        .is_complete =
                            [&] {
                              if (!fs::exists(folder_ / "killed.npy")) return false;
                              EXPECT_TRUE(bytes_of("killed") == bytes_of("whole"))
                                  << "not whole under its final name";
                              return true;
                            },
                        .remove_output =
                            [&] {
                              for (const char* ending : {"", ".index.jsonl", ".run.json"})
                                fs::remove(folder_ / (std::string("killed.npy") + ending));
                            }};
  const auto whole = [&] { return run("whole.npy", false, input).wait(); };
  EXPECT_EQ(run_until_it_ends(runs, whole), 0);
  EXPECT_TRUE(bytes_of("killed") == bytes_of("whole"));
}

TEST_F(EmbedStdinTest, AnInterruptEndsTheWaitForASilentInput) {
  const auto [writing, program] = run_of_pipe("in.npy");
  ::kill(program.pid(), SIGINT);
  EXPECT_TRUE(ends_within(program.pidfd(), 60'000));
  ::kill(program.pid(), SIGKILL);
  EXPECT_EQ(program.wait(), 128 + SIGINT);
}

TEST_F(EmbedStdinTest, AnotherRunIsRefusedUntilTheFirstIsDead) {
  const auto [writing, first] = run_of_pipe("x.npy");
  for (const bool resume : {false, true}) {
    const Program second(words_of("x.npy", resume, "in.txt"), (folder_ / "second").string());
    EXPECT_EQ(second.wait(), 6);
    const auto said = *read_file(folder_ / "second");
    EXPECT_NE(said.find("another run is writing it (process " + std::to_string(first.pid()) + ")"),
              std::string::npos)
        << said;
  }
  const Program search({std::string(MUSTER_BINARY_DIR) + "/bin/muster", "search",
                        (folder_ / "x.npy").string(), "a text"},
                       (folder_ / "search").string());
  EXPECT_EQ(search.wait(), 6);
  EXPECT_EQ(*read_file(folder_ / "search"),
            "muster: " + (folder_ / "x.npy").string() + ": a run is still writing it (process " +
                std::to_string(first.pid()) + "): wait for its end\n");
  ::kill(first.pid(), SIGKILL);
  EXPECT_EQ(first.wait(), -SIGKILL);
  Program third(words_of("x.npy", false, "in.txt", "--restart"), (folder_ / "third").string());
  EXPECT_EQ(third.wait(), 0) << *read_file(folder_ / "third");
  EXPECT_FALSE(fs::exists(folder_ / "x.npy.lock"));
}

// The first text stops the worker that has it, and the other one computes what is behind it. Once
// row 2000 is there before its turn, the run is killed.
class EmbedAheadKillTest : public EmbedRuns, public testing::Test {
 protected:
  EmbedAheadKillTest() {
    device_words_ = "2xcpu";
    std::ofstream input(folder_ / "ahead.txt");
    input << repeated("the ", 20) << "\n";
    // Only line 2001 has the token 78, "##ing".
    for (int i = 1; i < 3000; ++i) input << (i == 2000 ? "texting" : "text 23") << "\n";
  }

  Program run_ahead(const std::string& orders, bool resume) const {
    ::setenv("ZERO_WORKER", ("echo dim=64 " + orders).c_str(), 1);
    return {words_of("ahead.npy", resume, "ahead.txt", "--batch-tokens=256"),
            (folder_ / "log").string()};
  }

  bool is_ahead(std::uint64_t record) const {
    const auto journal = RunJournal::read(folder_ / "ahead.npy.journal");
    if (!journal) return false;
    const auto file = AheadFile::reopen(folder_ / "ahead.npy.ahead",
                                        identity_hash(journal->identity), /*record_count=*/0);
    return file && (*file)->has(record);
  }
};

TEST_F(EmbedAheadKillTest, WhatWasComputedBeforeItsTurnIsNotComputedAgain) {
  ASSERT_EQ(run_ahead("", false).wait(), 0) << *read_file(folder_ / "log");
  const auto undisturbed = bytes_of("ahead");
  for (const char* ending : {"", ".index.jsonl", ".run.json"}) {
    fs::remove(folder_ / (std::string("ahead.npy") + ending));
  }
  {
    const Program program = run_ahead("hang_on=79", false);
    while (!is_ahead(2000) && !ends_within(program.pidfd(), 1)) {
    }
    ::kill(program.pid(), SIGKILL);
    program.wait();
  }
  ASSERT_TRUE(is_ahead(2000)) << *read_file(folder_ / "log");
  // Whoever is asked for that text again dies of it.
  EXPECT_EQ(run_ahead("abort_on=78", true).wait(), 0) << *read_file(folder_ / "log");
  EXPECT_TRUE(bytes_of("ahead") == undisturbed);
  EXPECT_FALSE(fs::exists(folder_ / "ahead.npy.ahead"));
}

// The records with kept fields are killed the harder way.
INSTANTIATE_TEST_SUITE_P(Signals, EmbedKillTest,
                         testing::Values(KilledRun{SIGKILL, "in.jsonl"},
                                         KilledRun{SIGINT, "in.txt"}));

}  // namespace
}  // namespace muster
