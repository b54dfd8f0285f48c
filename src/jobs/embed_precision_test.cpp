// Which precision a run of embed_corpus is of where none is named, and what measuring it took.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "dataset/output_record.h"
#include "jobs/embed_fixture.h"
#include "jobs/run_files.h"

namespace muster {
namespace {

class EmbedPrecisionTest : public EchoEmbedFixture {
 protected:
  EmbedPrecisionTest() : EchoEmbedFixture("embed_precision", 1) {}
};

TEST_F(EmbedPrecisionTest, MeasuringIsCountedApart) {
  write_input("in.txt", "a\n");
  const auto first = run();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_GT(first->time.measure, 0.0);
  EXPECT_LT(first->time.measure, first->total_seconds);
  const auto second = run();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->time.measure, 0.0) << "its verdict was kept";
}

// The worker's own verdict is fp32: a run that went on measuring would be refused for it.
TEST_F(EmbedPrecisionTest, ARunGoesOnInItsPrecisionWhereNoneIsNamed) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "text " + std::to_string(i) + "\n";
  write_input("in.txt", lines);
  options_.precision = Precision::Bf16;
  ASSERT_FALSE(run([this] { return last_.text_count > 5000; }));
  last_ = {};
  options_.precision.reset();
  options_.resume = true;
  const auto resumed = run();
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_GT(resumed->progress.resumed_count, 0U);
  EXPECT_EQ(resumed->precision, Precision::Bf16);
  EXPECT_EQ(resumed->precision_reason, "that of the run before");
  EXPECT_EQ(notices_.find("measuring"), std::string::npos) << notices_;
  const auto record = read_output_record(RunFiles(options_.out).about);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->precision, "bf16");
}

// It computes nothing, and is repaired or gone when the run goes on.
TEST_F(EmbedPrecisionTest, AGpuThatItsDriverDoesNotFindIsNotOfTheRunsClass) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  options_.precision = Precision::Fp32;
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "text " + std::to_string(i) + "\n";
  write_input("in.txt", lines);
  ::setenv("ZERO_WORKER", "echo none_on=1", 1);
  ASSERT_FALSE(run([this] { return last_.text_count > 5000; }));
  ::setenv("ZERO_WORKER", "echo", 1);
  options_.devices.resize(1);
  options_.resume = true;
  const auto resumed = run();
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_GT(resumed->progress.resumed_count, 0U);
}

// Its verdict is not looked for, and it is not asked for one.
TEST_F(EmbedPrecisionTest, BehindAGpuThatItsDriverDoesNotFindTheNextDeviceIsMeasured) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  write_input("in.txt", "a\n");
  ::setenv("ZERO_WORKER", "echo none_on=0", 1);
  const auto first = run();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_GT(first->time.measure, 0.0);
  const auto second = run();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->time.measure, 0.0) << "its verdict was kept";
}

// The worker of cpu:0 ends at it, and the engine of cpu:1 is another one.
TEST_F(EmbedPrecisionTest, AVerdictIsKeptForTheDeviceThatWasMeasured) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  write_input("in.txt", "a\n");
  ::setenv("ZERO_WORKER", "echo other_on=1 abort_probe=0", 1);
  const auto first = run();
  ASSERT_TRUE(first) << first.error().message;
  ::setenv("ZERO_WORKER", "echo other_on=1", 1);
  const auto second = run();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_GT(second->time.measure, 0.0) << "nothing is kept for cpu:0";
  options_.devices.erase(options_.devices.begin());
  const auto third = run();
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(third->time.measure, 0.0) << "it is kept for cpu:1";
}

// Nothing of it is there to go on with.
TEST_F(EmbedPrecisionTest, ARunThatBeginsIsMeasured) {
  write_input("in.txt", "a\n");
  options_.resume = true;
  const auto begun = run();
  ASSERT_TRUE(begun) << begun.error().message;
  EXPECT_EQ(begun->precision, Precision::Fp32);
  EXPECT_GT(begun->time.measure, 0.0);
}

}  // namespace
}  // namespace muster
