// Faults of a GPU, planted in the stand-in for one, under the real programs: no text is lost, the
// device is named, and it is replaced or put aside.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "dataset/vector_file.h"
#include "integration/embedding_runs.h"
#include "integration/standin_reports.h"

namespace muster {
namespace {

class StandinFaultsTest : public testing::Test {
 protected:
  static constexpr int kTexts = 6000;

  StandinFaultsTest() {
    runs_.write_input("in.txt", EmbeddingRuns::texts(kTexts));
    EXPECT_EQ(run("whole.npy", "{}"), 0) << runs_.log();
  }
  ~StandinFaultsTest() override { ::unsetenv("STANDIN"); }

  // Small batches, so that every device has many.
  int run(const std::string& out, const std::string& standin,
          const std::string& devices = "2xstandin", std::vector<std::string> more = {}) const {
    ::setenv("STANDIN", standin.c_str(), 1);
    more.insert(more.end(), {"--devices", devices, "--precision", "fp32", "--batch-tokens", "2048",
                             "--color", "never"});
    return runs_.start("in.txt", out, more).wait();
  }

  // Words for standin:1 alone: how many of its starts they count for, and what they are. The other
  // one is slow, or it has done everything before standin:1 has its share on a busy machine.
  std::string faults_of_second(int starts, const std::string& words) const {
    return R"({"standin:0": {"slow_after_s": 0, "slow_factor": 3}, "standin:1": {"state_file": ")" +
           (runs_.folder() / "state").string() + R"(", "faulty_starts": )" +
           std::to_string(starts) + ", " + words + "}}";
  }

  void expect_every_text_in_spite_of(const std::string& standin,
                                     const std::string& devices = "2xstandin") const {
    EXPECT_EQ(run("out.npy", standin, devices), 0) << runs_.log();
    EXPECT_TRUE(runs_.rows_of("out.npy") == runs_.rows_of("whole.npy"));
  }

  void expect_words(const std::string& words) const {
    EXPECT_NE(runs_.log().find(words), std::string::npos) << words << "\n" << runs_.log();
  }

  const EmbeddingRuns runs_{"standin_faults"};
  const StandinReports reports_{runs_.folder()};
};

TEST_F(StandinFaultsTest, VectorsAreNearThoseOfTheCpu) {
  ASSERT_EQ(runs_.start("in.txt", "cpu.npy", {"--devices", "1xcpu", "--precision", "fp32"}).wait(),
            0)
      << runs_.log();
  const auto standin = VectorFile::open(runs_.folder() / "whole.npy");
  const auto cpu = VectorFile::open(runs_.folder() / "cpu.npy");
  ASSERT_TRUE(standin && cpu);
  for (std::size_t row = 0; row < kTexts; ++row) {
    const auto expected = (*cpu)->row(row);
    const auto found = (*standin)->row(row);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-5);
  }
}

TEST_F(StandinFaultsTest, Int8IsForCpusAndRefusedBeforeAWorkerStarts) {
  const auto int8 =
      runs_.start("in.txt", "int8.npy", {"--devices", "1xstandin", "--precision", "int8"});
  EXPECT_EQ(int8.wait(), exit_code(ErrorKind::Unsupported)) << runs_.log();
  expect_words("int8 is computed on CPUs only, and standin:0 is a GPU: use fp32, bf16 or fp16");
}

TEST_F(StandinFaultsTest, AnErrorThatStaysEndsTheWorkerAndANewOneGoesOn) {
  for (const char* error : {"illegal address", "launch failure", "timeout"}) {
    SCOPED_TRACE(error);
    std::filesystem::remove(runs_.folder() / "state");
    expect_every_text_in_spite_of(faults_of_second(
        1, R"("in_lanes": 1, "fail_at_kernel": 300, "error": ")" + std::string(error) + '"'));
    expect_words("standin:1 error:");
    expect_words("the GPU cannot be used any more by this process");
  }
}

TEST_F(StandinFaultsTest, AnErrorInACopyIsOneToo) {
  expect_every_text_in_spite_of(faults_of_second(1, R"("in_lanes": 1, "fail_at_copy": 5)"));
  expect_words("planted at aten::_copy_from");
}

// Its driver says so, or its next worker, whoever comes first.
TEST_F(StandinFaultsTest, ADeviceThatIsLostIsPutAside) {
  expect_every_text_in_spite_of(faults_of_second(
      0, R"("in_lanes": 1, "fail_at_kernel": 200, "error": "lost", "lost_for_s": 1e9)"));
  expect_words("standin:1 error: unknown error");
  expect_words("it is given up");
}

TEST_F(StandinFaultsTest, MemoryThatFailsLosesNoText) {
  expect_every_text_in_spite_of(
      faults_of_second(1, R"("in_lanes": 1, "fail_at_kernel": 300, "error": "ecc")"));
  expect_words("standin:1 error: uncorrectable ECC error encountered");
}

// Every worker fails there, so that the run cannot end before the report is seen; how many have
// until then is a matter of time.
TEST_F(StandinFaultsTest, AnXidOfTheOnlyDeviceEndsTheRunWithItsReasonAndAnotherOneGoesOn) {
  EXPECT_EQ(
      run("out.npy", faults_of_second(0, R"("in_lanes": 1, "fail_at_kernel": 300, "error": "ecc")"),
          "standin:1"),
      exit_code(ErrorKind::Unavailable))
      << runs_.log();
  expect_words("standin:1: the driver reported XID 48");
  expect_words("no device can work");
  EXPECT_EQ(run("out.npy", "{}", "standin:0", {"--resume"}), 0) << runs_.log();
  EXPECT_TRUE(runs_.rows_of("out.npy") == runs_.rows_of("whole.npy"));
}

TEST_F(StandinFaultsTest, ACopyThatHangsIsNoticedAndItsTextsGoElsewhere) {
  expect_every_text_in_spite_of(faults_of_second(1, R"("in_lanes": 1, "hang_at_copy": 9)"));
  expect_words("no answer in ");
}

TEST_F(StandinFaultsTest, MemoryThatIsNotThereForTheModelLeavesTheOtherDevice) {
  expect_every_text_in_spite_of(
      faults_of_second(0, R"("full_at_allocation": 1, "full_count": 1e9)"));
  expect_words("standin:1: the model cannot be loaded: standin:1 is out of memory");
}

TEST_F(StandinFaultsTest, MemoryThatIsNotThereForTheModelIsWaitedForWhereThereIsNoOtherDevice) {
  expect_every_text_in_spite_of(faults_of_second(0, R"("full_at_allocation": 1, "full_count": 2)"),
                                "standin:1");
  expect_words("standin:1: a model cannot be loaded: standin:1 is out of memory");
  expect_words("it is tried again in 1 s");
}

// The canary, alone in its pass. The stand-in fails once without giving back what it keeps, as
// CUDA's allocator does while another lane captures a graph.
TEST_F(StandinFaultsTest, MemoryThatIsThereForTheSecondTryIsNotWaitedFor) {
  expect_every_text_in_spite_of(faults_of_second(0, R"("in_lanes": 1, "full_at_allocation": 1)"),
                                "standin:1");
  EXPECT_EQ(reports_.number(1, offsetof(StandinReport, full)), 1U);
  EXPECT_EQ(runs_.log().find("out of memory"), std::string::npos) << runs_.log();
}

TEST_F(StandinFaultsTest, MemoryThatIsNotThereForTheFirstTextIsWaitedForByTheSameWorker) {
  expect_every_text_in_spite_of(
      faults_of_second(0, R"("in_lanes": 1, "full_at_allocation": 1, "full_count": 2)"),
      "standin:1");
  expect_words("standin:1: there is no memory for its canary: standin:1 is out of memory");
}

// One device alone, so that it has all batches. How they are cut is a matter of time, so
// allocations are counted first, and what is planted lies well within them.
TEST_F(StandinFaultsTest, MemoryThatIsNotThereForAPassIsWaitedForInSmallerOnes) {
  ASSERT_EQ(run("alone.npy", R"({"all": {"in_lanes": 1}})", "standin:1"), 0) << runs_.log();
  const auto allocations = reports_.number(1, offsetof(StandinReport, allocations));
  ASSERT_GT(allocations, 400U);
  for (const auto first : {allocations / 4, allocations / 2}) {
    SCOPED_TRACE(first);
    std::filesystem::remove(runs_.folder() / "state");
    expect_every_text_in_spite_of(
        faults_of_second(
            0, R"("in_lanes": 1, "full_count": 3, "full_at_allocation": )" + std::to_string(first)),
        "standin:1");
    EXPECT_EQ(reports_.number(1, offsetof(StandinReport, full)), 3U);
    expect_words("the GPU's memory is short");
  }
}

TEST_F(StandinFaultsTest, ASlowDeviceLosesNothing) {
  expect_every_text_in_spite_of(R"({"standin:1": {"slow_after_s": 0, "slow_factor": 20}})");
  constexpr auto kKernels = offsetof(StandinReport, kernels);
  EXPECT_LT(reports_.number(1, kKernels), reports_.number(0, kKernels));
}

}  // namespace
}  // namespace muster
