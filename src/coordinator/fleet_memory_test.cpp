// Worker processes that find no memory, for a model, a canary or a batch
// (fleet_faults_fixture.h).

#include "coordinator/fleet_faults_fixture.h"

namespace muster {
namespace {

using FleetMemoryTest = FleetFaultsTest;

TEST_F(FleetMemoryTest, AFullDeviceGetsSmallerBatchesAndLargerOnesLater) {
  fall_ill();
  start(R"({"cpu:0": {"oom_above_tokens": 40, "ill_file": "@"}})", 1);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return device(0).token_budget < 100; }));
  recover();
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return device(0).token_budget == 100; }, 500));
  finish();
  EXPECT_TRUE(failed_.empty());
  EXPECT_EQ(device(0).restart_count, 0U);
}

TEST_F(FleetMemoryTest, ADeviceWhoseMemoryOthersTakeKeepsItsWorkerAndComesBackByItself) {
  start(R"({"cpu:0": {"batch_us_per_token": 5},
            "cpu:1": {"fail_from_batch": 1, "fail_kind": "ResourceExhausted", "ill_file": "@"}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return are_ready() && device(1).batch_count > 0; }));
  const auto pid = device(1).pid();
  fall_ill();
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Restarting); }));
  EXPECT_EQ(device(1).reason, "there is no memory for its canary: told to fail; it is asked again");
  ASSERT_NO_FATAL_FAILURE(run_until(rows_since(1000)));
  recover();
  const auto before = device(1).batch_count;
  ASSERT_NO_FATAL_FAILURE(run_until([&] { return device(1).batch_count > before; }));
  EXPECT_TRUE(is(1, GroupState::Ready)) << states();
  EXPECT_EQ(device(1).reason, "");
  EXPECT_EQ(device(1).pid(), pid);
  EXPECT_EQ(device(1).quarantine_count, 0U) << notices_;
  expect_nothing_lost();
}

// Its first canary finds no memory, and nobody else has the model.
TEST_F(FleetMemoryTest, AloneADeviceWithoutMemoryForItsCanaryIsWaitedFor) {
  gives_up_ = true;
  fall_ill();
  start(R"({"cpu:0": {"fail_from_batch": 1, "fail_kind": "ResourceExhausted", "ill_file": "@"}})",
        1);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(0, GroupState::Restarting); }));
  recover();
  ASSERT_NO_FATAL_FAILURE(run_until(rows_since(100)));
  EXPECT_EQ(device(0).restart_count, 0U);
  expect_nothing_lost();
}

TEST_F(FleetMemoryTest, AServerLoadsOnceThereIsMemory) {
  fall_ill();
  start(R"({"cpu:1": {"fail_load": "ResourceExhausted", "ill_file": "@"}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Restarting); }));
  EXPECT_EQ(device(1).reason, "a model cannot be loaded: told not to load; it is tried again");
  EXPECT_NE(notices_.find("cpu:1: a model cannot be loaded: told not to load; it is tried again in "
                          "1 s"),
            std::string::npos)
      << notices_;
  ASSERT_NO_FATAL_FAILURE(run_until(rows_since(500)));
  recover();
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Ready); }));
  EXPECT_EQ(device(1).reason, "");
  EXPECT_EQ(device(1).restart_count, 0U);
  expect_nothing_lost();
}

TEST_F(FleetMemoryTest, AJobGoesOnWithoutADeviceThatHasNoMemoryForTheModel) {
  gives_up_ = true;
  start(R"({"cpu:1": {"fail_load": "ResourceExhausted"}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::GivenUp); }));
  EXPECT_EQ(device(1).reason, "the model cannot be loaded: told not to load");
  expect_nothing_lost();
}

TEST_F(FleetMemoryTest, AJobWaitsForTheMemoryOfItsOnlyDevice) {
  gives_up_ = true;
  fall_ill();
  start(R"({"cpu:0": {"fail_load": "ResourceExhausted", "ill_file": "@"}})", 1);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(0, GroupState::Restarting); }));
  recover();
  ASSERT_NO_FATAL_FAILURE(run_until(rows_since(100)));
  EXPECT_EQ(device(0).restart_count, 0U);
  expect_nothing_lost();
}

TEST_F(FleetMemoryTest, ADeviceWithoutMemoryAfterItsQuarantineWaitsForIt) {
  start(R"({"cpu:0": {"batch_us_per_token": 5}, "cpu:1": {"fail_from_batch": 2}})");
  ::setenv("FAULTY_WORKER", R"({"cpu:1": {"fail_load": "ResourceExhausted"}})", 1);
  ASSERT_NO_FATAL_FAILURE(run_until(
      [this] { return device(1).quarantine_count > 0 && is(1, GroupState::Restarting); }));
  EXPECT_EQ(device(1).reason, "a model cannot be loaded: told not to load; it is tried again");
  EXPECT_NE(notices_.find("its new worker has no memory for a model"), std::string::npos)
      << notices_;
  EXPECT_EQ(notices_.find("answers as it should"), std::string::npos) << notices_;
  expect_nothing_lost();
}

}  // namespace
}  // namespace muster
