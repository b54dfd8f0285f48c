// muster embed on the real program: whose files it writes over, and flags that would count for
// nothing. zero_worker stands in for the engine.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "run_muster.h"

namespace muster {
namespace {

using Words = std::vector<std::string>;

class EmbedCommand : public testing::Test {
 protected:
  EmbedCommand() {
    muster_.set("ZERO_WORKER", "echo");
    muster_.write("notes.txt", "one\ntwo\n");
    muster_.write("notes.jsonl", "{\"body\":\"one\",\"key\":\"a\"}\n");
  }

  Finished embed(Words words) {
    words.insert(words.begin(), {"embed", tiny_model()});
    words.insert(words.end(), {"--precision", "fp32", "--quiet"});
    return muster_.run(with_test_worker(words));
  }

  Muster muster_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(EmbedCommand, AFileOfSomebodysOwnIsNotReplaced) {
  const std::string own = "{\"text\":\"my own\"}\n";
  for (const std::string name : {"mine.jsonl", "mine.npy.index.jsonl", "mine.npy.run.json"}) {
    muster_.write(name, own);
    const auto out = name == "mine.jsonl" ? name : "mine.npy";
    for (const Words& flags : {Words{}, Words{"--restart"}, Words{"--resume"}}) {
      auto words = Words{"notes.txt", "-o", out};
      words.insert(words.end(), flags.begin(), flags.end());
      const auto refused = embed(words);
      EXPECT_EQ(refused.exit_code, 2) << refused.err;
      EXPECT_EQ(refused.err.find("muster: " + name + ": is there"), 0U) << refused.err;
      EXPECT_TRUE(refused.err.ends_with(": remove it, or name another output with -o\n"))
          << refused.err;
      EXPECT_EQ(muster_.read(name), own);
    }
    std::filesystem::remove(muster_.folder() / name);
  }
  EXPECT_EQ(embed({"notes.txt", "-o", "mine.jsonl"}).exit_code, 0);
  EXPECT_EQ(embed({"notes.txt", "-o", "mine.jsonl"}).exit_code, 0) << "its own is replaced";
}

TEST_F(EmbedCommand, AFilesOwnBitsAreOfModelsThatGenerate) {
  const auto refused = muster_.run(
      with_test_worker({"embed", tiny_model(), "notes.txt", "-o", "x.npy", "--precision", "own"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err,
            "muster: --precision: own is for models that generate; embed has fp32, bf16, fp16 and "
            "int8\n");
}

// By its worker it was, after the start, and the sentence was there twice.
TEST_F(EmbedCommand, WhatNoCpuComputesIsRefusedAtOnce) {
  const auto refused = muster_.run(
      with_test_worker({"embed", tiny_model(), "notes.txt", "-o", "x.npy", "--precision", "fp16"}));
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_EQ(refused.err,
            "muster: --precision: fp16 is computed on GPUs only, and cpu:0 is a CPU: use fp32, "
            "bf16 or int8, or GPUs alone\n");
  EXPECT_FALSE(muster_.exists("x.npy.part"));
}

TEST_F(EmbedCommand, CpusAreNotTakenInPlaceOfALostGpuWithoutAWord) {
  muster_.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster_.set("FAKENVML_SCENARIO", (muster_.folder() / "gpus.json").string());
  muster_.write("gpus.json", R"({"fake_nvml":1,"gpus":[{"model":"T4","lost":{"from":0}}]})");
  const auto on = [&](const std::string& devices) {
    return muster_.run({"embed", tiny_model(), "notes.txt", "-o", "x.npy", "--precision", "fp32",
                        "--quiet", "--torch-root", "torch", "--devices", devices,
                        "--worker-program", MUSTER_BINARY_DIR "/bin/zero_worker"});
  };
  const auto done = on("auto");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(done.err.starts_with(
      "muster: warning: cuda:0 is lost: GPU is lost (NVML 15); the work goes to cpu:0"))
      << done.err;
  for (const std::string devices : {"cuda", "cuda:0"}) {
    const auto refused = on(devices);
    EXPECT_EQ(refused.exit_code, 6) << refused.err;
    EXPECT_NE(refused.err.find("cuda:0 is lost: GPU is lost (NVML 15)"), std::string::npos)
        << refused.err;
  }
}

TEST_F(EmbedCommand, FieldsOfPlainLinesAreRefused) {
  const auto expect_refused = [&](const Words& words, const std::string& message) {
    auto all = words;
    all.insert(all.end(), {"-o", "x.npy"});
    const auto refused = embed(all);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_EQ(refused.err, "muster: " + message + "\n");
    EXPECT_FALSE(muster_.exists("x.npy"));
  };
  expect_refused({"notes.txt", "--id-field", "nosuch"},
                 "notes.txt: a plain line has no field \"nosuch\" for an id: --format says what "
                 "else it is");
  expect_refused({"notes.jsonl", "notes.txt", "--field", "body", "--id-field", "key"},
                 "notes.txt: a plain line has no field \"key\" for an id: --format says what else "
                 "it is");
  expect_refused({"notes.txt", "--field", "body"},
                 "notes.txt: a plain line has no field \"body\", only \"text\": --format says what "
                 "else it is");
  expect_refused({"notes.jsonl", "--format", "lines", "--field", "body"},
                 "notes.jsonl: a plain line has no field \"body\", only \"text\": --format says "
                 "what else it is");
}

TEST_F(EmbedCommand, FieldsCountWhereThereAreSome) {
  EXPECT_EQ(embed({"notes.txt", "--field", "text", "-o", "a.npy"}).exit_code, 0);
  const auto mixed = embed({"notes.txt", "notes.jsonl", "--field", "body", "-o", "b.npy"});
  EXPECT_EQ(mixed.exit_code, 0) << mixed.err;
  const auto objects =
      embed({"notes.jsonl", "--field", "body", "--id-field", "key", "-o", "c.npy"});
  EXPECT_EQ(objects.exit_code, 0) << objects.err;
  // A setting for many commands does not forbid those that have no use for it.
  muster_.set("MUSTER_FIELD", "body");
  muster_.set("MUSTER_ID_FIELD", "key");
  const auto plain = embed({"notes.txt", "-o", "d.npy"});
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
}

}  // namespace
}  // namespace muster
