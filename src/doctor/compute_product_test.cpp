// Real processes: every test starts zero_worker programs (stand_ins/zero_worker), which know the
// right product, or are told to have a wrong one.

#include "doctor/compute_product.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/build_info.h"

namespace muster {
namespace {

class ComputeTestTest : public testing::Test {
 protected:
  ~ComputeTestTest() override { ::unsetenv("ZERO_WORKER"); }

  std::vector<ComputeOutcome> run(const char* orders, std::uint32_t device_count = 1) {
    ::setenv("ZERO_WORKER", orders, 1);
    options_.worker_program = std::string(MUSTER_BINARY_DIR) + "/bin/zero_worker";
    options_.build = std::string(build_name());
    std::vector<Device> devices(device_count);
    for (std::uint32_t i = 0; i < device_count; ++i) {
      devices[i].index = i;
      devices[i].cpus = {0, 0};  // two lanes
    }
    return test_devices(devices, options_, clock_);
  }

  SteadyClock clock_;
  ComputeTestOptions options_;
};

TEST_F(ComputeTestTest, ARightProductHasASpeed) {
  const auto outcomes = run("", 2);
  ASSERT_EQ(outcomes.size(), 2U);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(outcomes[i].device.index, i);
    ASSERT_FALSE(outcomes[i].error) << outcomes[i].error->message;
    ASSERT_EQ(outcomes[i].speeds.size(), 1U);
    EXPECT_EQ(outcomes[i].speeds[0].wrong_row_count, 0U);
    // 2 lanes x 2 x 1024^3 operations in a millisecond.
    EXPECT_DOUBLE_EQ(outcomes[i].speeds[0].flops_per_second, 2 * 2.0 * 1073741824 / 1e-3);
  }
}

TEST_F(ComputeTestTest, OneWrongEntryIsFound) {
  const auto outcomes = run("wrong_product");
  ASSERT_FALSE(outcomes[0].error);
  EXPECT_EQ(outcomes[0].speeds.at(0).wrong_row_count, 1U);
}

TEST_F(ComputeTestTest, WhatTheWorkerSaysIsTheError) {
  EXPECT_EQ(run("fail_product")[0].error->message, "told to fail");
}

TEST_F(ComputeTestTest, AWorkerThatDiesIsAnErrorWithItsLastWords) {
  const auto outcomes = run("exit_at_start");
  ASSERT_TRUE(outcomes[0].error);
  EXPECT_EQ(outcomes[0].error->message,
            "the worker ended with exit code 3; it last said: told to exit");
}

TEST_F(ComputeTestTest, AWorkerOfAnotherBuildIsRefused) {
  const auto outcomes = run("other_build");
  ASSERT_TRUE(outcomes[0].error);
  EXPECT_EQ(outcomes[0].error->kind, ErrorKind::Unsupported);
}

TEST_F(ComputeTestTest, AWorkerThatHangsIsEndedWhenItsTimeIsOver) {
  options_.limit = std::chrono::milliseconds(300);
  const auto outcomes = run("hang_product");
  ASSERT_TRUE(outcomes[0].error);
  EXPECT_EQ(outcomes[0].error->kind, ErrorKind::DeadlineExceeded);
}

TEST_F(ComputeTestTest, AMissingProgramIsAnErrorOfEachDevice) {
  options_.build = std::string(build_name());
  options_.worker_program = "/nonexistent/worker";
  const auto outcomes = test_devices(std::vector<Device>(2), options_, clock_);
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[1].error->kind, ErrorKind::NotFound);
}

TEST(ProductSize, IsLargeWhereThereIsRoom) {
  Device gpu;
  EXPECT_EQ(product_size(gpu), 1024U);
  gpu.kind = DeviceKind::Cuda;
  EXPECT_EQ(product_size(gpu), 2048U);
  gpu.memory_free_bytes = 80'000'000'000;
  EXPECT_EQ(product_size(gpu), 8192U);
}

}  // namespace
}  // namespace muster
