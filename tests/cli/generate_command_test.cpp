// muster generate on the real program, with a stand-in for the engine that counts.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "run_muster.h"

namespace muster {
namespace {

// The stand-in's next token is the last one plus one: behind "az" ("a", "##z") come "0", "##0", "1"
// and "##1" of the vocabulary.
TEST(GenerateCommand, TakesItsPromptFromStandardInput) {
  Muster muster("generate_command");
  const auto model = muster.folder() / "model";
  write_tiny_decoder(muster, model);
  muster.write("prompt", "the\naz\n");
  const auto generate = [&](const std::string& prompt, const std::string& input) {
    return muster.run({"generate", model.string(), "-p", prompt, "--max-tokens", "4", "--json",
                       "--devices", "cpu:0", "--torch-root", "torch", "--worker-program",
                       MUSTER_BINARY_DIR "/bin/counting_worker"},
                      input);
  };
  const auto read = generate("-", "prompt");
  ASSERT_EQ(read.exit_code, 0) << read.err;
  const auto json = nlohmann::json::parse(read.out);
  EXPECT_EQ(json["text"], "00 11");
  EXPECT_EQ(json["prompt_tokens"], 3) << "both lines";
  EXPECT_EQ(json["completion_tokens"], 4);
  const auto given = generate("the az", "/dev/null");
  ASSERT_EQ(given.exit_code, 0) << given.err;
  EXPECT_EQ(nlohmann::json::parse(given.out)["text"], "00 11");
}

TEST(GenerateCommand, ItsWorkerKeepsNothingWhereItIsToldSo) {
  Muster muster("generate_prefix_cache");
  write_tiny_decoder(muster, muster.folder() / "model");
  muster.set("COUNTING_WORKER", "no_prefix_cache");
  std::vector<std::string> words{"generate",
                                 "model",
                                 "-p",
                                 "az",
                                 "--devices",
                                 "cpu:0",
                                 "--quiet",
                                 "--torch-root",
                                 "torch",
                                 "--worker-program",
                                 MUSTER_BINARY_DIR "/bin/counting_worker"};
  EXPECT_NE(muster.run(words).err.find("told not to load"), std::string::npos)
      << "it keeps them unless it is told not to";
  words.emplace_back("--no-prefix-cache");
  const auto finished = muster.run(words);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

// Its worker loads for ever.
TEST(GenerateCommand, TellsNothingThatWasNotMeasuredWhenItIsInterrupted) {
  Muster muster("generate_interrupted");
  const auto model = muster.folder() / "model";
  write_tiny_decoder(muster, model);
  muster.write("worker", "#!/bin/sh\ntouch started\nexec sleep 60\n");
  std::filesystem::permissions(muster.folder() / "worker", std::filesystem::perms::owner_all);
  const auto pid =
      muster.start({"generate", model.string(), "-p", "the az", "--devices", "cpu:0",
                    "--torch-root", "torch", "--worker-program", muster.folder() / "worker"});
  constexpr auto kLong = std::chrono::seconds(60);
  const auto begin = std::chrono::steady_clock::now();
  while (!muster.exists("started") && std::chrono::steady_clock::now() - begin < kLong) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ::kill(pid, SIGINT);
  const auto finished = muster.wait(pid);
  EXPECT_EQ(finished.exit_code, 128 + SIGINT);
  EXPECT_EQ(finished.out, "\n");
  EXPECT_EQ(finished.err, "stopped before the first token\n");
}

}  // namespace
}  // namespace muster
