// muster generate on the real program, with a stand-in for the engine that counts.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
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

// It was read to its end, and then put into one message to the worker, which has a limit.
TEST(GenerateCommand, APromptOfStandardInputThatNoContextHoldsIsRefused) {
  Muster muster("generate_long");
  write_tiny_decoder(muster, muster.folder() / "model");
  const auto generate = [&](const std::string& input) {
    return muster.run(
        {"generate", "model", "-p", "-", "--raw", "--precision", "fp32", "--devices", "cpu:0",
         "--torch-root", "torch", "--worker-program", MUSTER_BINARY_DIR "/bin/counting_worker"},
        input);
  };
  muster.write("much", std::string((std::size_t{16} << 20U) + 1, 'a'));
  const auto refused = generate("much");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err,
            "muster: -p - takes the prompt from standard input: more than 16 MiB came\n");
  std::string words;
  for (int i = 0; i < 100'000; ++i) words += "the ";
  muster.write("long", words);
  const auto longer = generate("long");
  EXPECT_EQ(longer.exit_code, 2);
  EXPECT_TRUE(
      longer.err.ends_with("muster: the context is 64 tokens, prompt and reply together, and the "
                           "prompt has as many or more\n"))
      << longer.err;
}

TEST(GenerateCommand, RefusesAPrecisionThatItDoesNotKnow) {
  Muster muster("generate_precision");
  for (const std::string command : {"generate", "chat"}) {
    std::vector<std::string> words{command, "m.gguf", "--precision", "eight"};
    if (command == "generate") words.insert(words.end(), {"-p", "Hi"});
    const auto refused = muster.run(words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_EQ(refused.err,
              "muster: --precision must be auto, own, bf16, fp32 or int8: \"eight\"\n");
  }
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

TEST(GenerateCommand, ItsWorkerKeepsKeysAndValuesInWhatItIsTold) {
  Muster muster("generate_kv_cache");
  write_tiny_decoder(muster, muster.folder() / "model");
  muster.set("COUNTING_WORKER", "int8_cache");
  const auto generate = [&](const std::string& dtype) {
    return muster.run({"generate", "model", "-p", "az", "--max-tokens", "4", "--json", "--devices",
                       "cpu:0", "--kv-cache-dtype", dtype, "--torch-root", "torch",
                       "--worker-program", MUSTER_BINARY_DIR "/bin/counting_worker"});
  };
  EXPECT_NE(generate("fp16").err.find("told not to load"), std::string::npos);
  const auto finished = generate("int8");
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(nlohmann::json::parse(finished.out)["kv_cache_dtype"], "int8");
  const auto unknown = generate("q8_0");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(unknown.err.find("muster: --kv-cache-dtype must be one of auto, fp32, fp16, int8: "
                             "\"q8_0\""),
            0U)
      << unknown.err;
}

// Behind "a" come the byte 27, which begins what a terminal obeys, and "b". Token 2 would end the
// reply, as it does in a Llama whose config names no end.
TEST(GenerateCommand, ATerminalDoesNothingThatAReplySays) {
  Muster muster("generate_terminal");
  write_tiny_decoder(muster, muster.folder() / "model");
  muster.write("model/tokenizer.json", R"({"version": "1.0", "truncation": null, "padding": null,
      "added_tokens": [], "normalizer": null, "post_processor": null,
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                        "use_regex": true},
      "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                  "use_regex": true},
      "model": {"type": "BPE", "dropout": null, "unk_token": null,
                "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": false,
                "byte_fallback": false, "ignore_merges": false, "merges": [],
                "vocab": {"!": 0, "#": 1, "$": 2, "a": 3, "\u011b": 4, "b": 5}}})");
  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_GE(terminal.get(), 0);
  ASSERT_EQ(::grantpt(terminal.get()), 0);
  ASSERT_EQ(::unlockpt(terminal.get()), 0);
  const std::string name = ::ptsname(terminal.get());
  const UniqueFd other_end(::open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_GE(other_end.get(), 0);
  const auto generate = [&](const std::string& output) {
    return muster.run({"generate", "model", "-p", "a", "--raw", "--max-tokens", "2", "--quiet",
                       "--devices", "cpu:0", "--torch-root", "torch", "--worker-program",
                       MUSTER_BINARY_DIR "/bin/counting_worker"},
                      "/dev/null", output);
  };
  const auto piped = generate("stdout");
  ASSERT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(piped.out, "\033b\n") << "a program gets what was generated";
  const auto shown = generate(name);
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  std::string screen;
  while (screen.find('\n') == std::string::npos) {
    std::array<char, 64> piece{};
    const auto size = ::read(terminal.get(), piece.data(), piece.size());
    ASSERT_GT(size, 0);
    screen.append(piece.data(), static_cast<std::size_t>(size));
  }
  EXPECT_EQ(screen, " b\r\n") << "the terminal adds the return";
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

TEST(GenerateCommand, ARefusalIsNotPrecededByWhereTheWorkGoes) {
  Muster muster("generate_refusal");
  write_tiny_decoder(muster, muster.folder() / "model");
  muster.write("p.txt", "the az\n");
  muster.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster.set("FAKENVML_SCENARIO", (muster.folder() / "gpus.json").string());
  muster.write("gpus.json", R"({"fake_nvml":1,"gpus":[
      {"model":"H200","lost":{"from":0}},{"model":"H200"},{"model":"H200"}]})");
  const auto one = muster.run({"generate", "model", "-p", "a", "--devices", "cuda"});
  EXPECT_EQ(one.exit_code, 4);
  EXPECT_EQ(one.err,
            "muster: a reply is computed on one device, and --devices cuda names 2: name one, such "
            "as cpu:0; it uses all of its cores\n");
  const auto many = muster.run(
      {"generate", "model", "--prompts", "p.txt", "-o", "r.jsonl", "--devices", "1xcpu,cuda"});
  EXPECT_EQ(many.exit_code, 4);
  EXPECT_EQ(many.err,
            "muster: replies of one file have the bits of one kind of device, and --devices "
            "1xcpu,cuda names cpu:0 and cuda:1: name either\n");
}

/// `muster generate --prompts`, with the stand-in that counts.
class GeneratePrompts : public testing::Test {
 protected:
  GeneratePrompts() {
    write_tiny_decoder(muster_, muster_.folder() / "model");
    muster_.write("p.txt", "the az\n\naz\n");
  }

  static std::vector<std::string> words(std::vector<std::string> more) {
    std::vector<std::string> all{"generate",         "model",
                                 "--max-tokens",     "4",
                                 "--devices",        "2xcpu",
                                 "--torch-root",     "torch",
                                 "--worker-program", MUSTER_BINARY_DIR "/bin/counting_worker"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Finished generate(std::vector<std::string> more, const std::string& input = "/dev/null") {
    return muster_.run(words(std::move(more)), input);
  }

  void expect_refused(const std::vector<std::string>& more, const std::string& sentence) {
    const auto refused = generate(more);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_EQ(refused.err, "muster: " + sentence + "\n");
    EXPECT_EQ(refused.out, "");
  }

  static constexpr const char* kFirst =
      R"({"index":0,"input":"p.txt","line":1,"text":"00 11","finish_reason":"length",)"
      R"("prompt_tokens":3,"completion_tokens":4})";
  static constexpr const char* kSecond =
      R"({"index":1,"input":"p.txt","line":3,"text":"00 11","finish_reason":"length",)"
      R"("prompt_tokens":2,"completion_tokens":4})";

  Muster muster_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(GeneratePrompts, WritesALineForEachAndSaysHowFast) {
  const auto done = generate({"--prompts", "p.txt", "-o", "r.jsonl"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(muster_.read("r.jsonl"), std::string(kFirst) + "\n" + kSecond + "\n");
  EXPECT_EQ(done.out.find("2 replies in "), 0U) << done.out;
  EXPECT_NE(done.out.find(" tokens/s, precision own\n"
                          "r.jsonl [2 replies]; 5 tokens of prompts, 8 of replies\n"
                          "1 blank line was passed over\n"),
            std::string::npos)
      << done.out;
  EXPECT_TRUE(muster_.exists("r.jsonl.run.json"));
  const auto again = generate({"--prompts", "p.txt", "-o", "r.jsonl", "--resume", "--quiet"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, "");
  const auto told = generate({"--prompts", "p.txt", "-o", "r.jsonl", "--json", "--quiet"});
  EXPECT_EQ(nlohmann::json::parse(told.out)["completion_tokens"], 8);
}

// Replies of one run are of one precision.
TEST_F(GeneratePrompts, WhatIsResumedKeepsItsPrecisionWhereNoneIsNamed) {
  const std::vector<std::string> flags{"--prompts", "p.txt", "-o", "r.jsonl", "--json", "--quiet"};
  const auto with = [&flags](std::vector<std::string> more) {
    more.insert(more.begin(), flags.begin(), flags.end());
    return more;
  };
  ASSERT_EQ(generate(with({"--precision", "fp32"})).exit_code, 0);
  const auto resumed = generate(with({"--resume"}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const auto report = nlohmann::json::parse(resumed.out);
  EXPECT_EQ(report["precision"], "fp32");
  EXPECT_EQ(report["precision_reason"], "that of the run before");
  const auto other = generate(with({"--resume", "--precision", "bf16"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("--precision was fp32 and is now bf16"), std::string::npos) << other.err;
}

TEST_F(GeneratePrompts, TakesStandardInputAndGivesStandardOutput) {
  const auto done = generate({"--prompts", "-", "-o", "-", "--quiet"}, "p.txt");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(nlohmann::json::parse(done.out.substr(0, done.out.find('\n')))["text"], "00 11");
  EXPECT_EQ(done.err, "");
}

TEST_F(GeneratePrompts, FlagsThatDoNotGoTogetherAreRefusedInASentence) {
  expect_refused({"-p", "a", "--prompts", "p.txt", "-o", "r.jsonl"},
                 "-p is one prompt and --prompts a file of them: give one of the two");
  expect_refused({"-p", "a", "-o", "r.jsonl"},
                 "--out is for many prompts: name their file with --prompts");
  expect_refused({"-p", "a", "--resume"},
                 "--resume is for many prompts: name their file with --prompts");
  expect_refused({"-p", "a", "--field", "body"},
                 "--field is for many prompts: name their file with --prompts");
  expect_refused({"--prompts", "p.txt"},
                 "where should the replies go? Name a file with -o, such as -o replies.jsonl");
  expect_refused({"--prompts", "p.txt", "-o", "r.txt"},
                 "r.txt: replies are written as .jsonl, a line for each: name the output so");
  expect_refused({"--prompts", "p.txt", "-o", "-", "--json"},
                 "--json prints the report on standard output, where the replies go (-o -)");
  expect_refused({"--prompts", "p.txt", "-o", "r.jsonl", "--raw", "--system", "x"},
                 "--raw has no place for --system");
  expect_refused({"--prompts", "p.txt", "-o", "r.jsonl", "--resume", "--restart"},
                 "--resume and --restart exclude each other");
}

TEST_F(GeneratePrompts, ItsWorkersKeepNothingWhereTheyAreToldSo) {
  muster_.set("COUNTING_WORKER", "no_prefix_cache");
  std::vector<std::string> flags{"--prompts", "p.txt", "-o", "r.jsonl", "--quiet"};
  EXPECT_NE(generate(flags).err.find("told not to load"), std::string::npos)
      << "they keep them unless they are told not to";
  flags.emplace_back("--no-prefix-cache");
  const auto finished = generate(flags);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

TEST_F(GeneratePrompts, ItsWorkersKeepKeysAndValuesInWhatTheyAreTold) {
  muster_.set("COUNTING_WORKER", "int8_cache");
  std::vector<std::string> flags{"--prompts", "p.txt", "-o", "r.jsonl", "--quiet"};
  EXPECT_NE(generate(flags).err.find("told not to load"), std::string::npos);
  flags.insert(flags.end(), {"--kv-cache-dtype", "int8"});
  const auto finished = generate(flags);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

TEST_F(GeneratePrompts, AWrongInputIsNamedBeforeAWorkerStarts) {
  const auto missing = generate({"--prompts", "q.txt", "-o", "r.jsonl"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_EQ(missing.err, "muster: q.txt: no such file; nearest is p.txt\n");
  muster_.write("bad.jsonl", "{\"prompt\":\"a\"}\n");
  const auto bad = generate({"--prompts", "bad.jsonl", "-o", "r.jsonl", "--quiet"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_EQ(bad.err,
            "muster: bad.jsonl:1: no field \"text\"; there is \"prompt\"; --field names another; "
            "--skip-bad goes on without such records\n");
  const auto named =
      generate({"--prompts", "bad.jsonl", "-o", "r.jsonl", "--quiet", "--field", "prompt"});
  EXPECT_EQ(named.exit_code, 0) << named.err;
}

// A worker stops in the middle of its first reply; those of the other are finished.
TEST_F(GeneratePrompts, AfterCtrlCItSaysWhatIsKeptAndHowToGoOn) {
  std::string prompts = "the\n";
  for (int i = 0; i < 200; ++i) prompts += "az\n";
  muster_.write("many.txt", prompts);
  const std::vector<std::string> flags{"--prompts", "many.txt", "-o", "r.jsonl"};
  ASSERT_EQ(generate(flags).exit_code, 0);
  const auto undisturbed = muster_.read("r.jsonl");
  std::filesystem::remove(muster_.folder() / "r.jsonl");
  std::filesystem::remove(muster_.folder() / "r.jsonl.run.json");
  muster_.set("COUNTING_WORKER", "hang_on=79");  // "the" is the last of the 80 tokens
  const auto pid = muster_.start(words(flags));
  // Written a second after the first replies, behind a step of the journal.
  while (!muster_.exists("r.jsonl.ahead")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ::kill(pid, SIGINT);
  const auto stopped = muster_.wait(pid);
  EXPECT_EQ(stopped.exit_code, 128 + SIGINT) << stopped.err;
  const auto said = stopped.err.find("muster: stopped; ");
  ASSERT_NE(said, std::string::npos) << stopped.err;
  EXPECT_NE(stopped.err.find(" replies are kept, go on with: ", said), std::string::npos)
      << stopped.err;
  EXPECT_TRUE(stopped.err.ends_with(" --prompts many.txt -o r.jsonl --resume\n")) << stopped.err;
  muster_.set("COUNTING_WORKER", "");
  const auto resumed = generate({"--prompts", "many.txt", "-o", "r.jsonl", "--resume"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find(" replies were there already (--resume)\n"), std::string::npos)
      << resumed.out;
  EXPECT_EQ(muster_.read("r.jsonl"), undisturbed);
}

}  // namespace
}  // namespace muster
