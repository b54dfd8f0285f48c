// Illnesses of worker processes (fleet_faults_fixture.h). Those of memory are in
// fleet_memory_test.cpp.

#include <signal.h>
#include <sys/wait.h>

#include <random>

#include "coordinator/fleet_faults_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;

TEST_F(FleetFaultsTest, KillsAndCancelsAtRandomMomentsLoseAndDoubleNothing) {
  start(R"({"cpu:0": {"batch_us_per_token": 5}, "cpu:1": {"batch_us_per_token": 5}})");
  std::mt19937 random(20240607);
  for (int kills = 0; kills < 20; ++kills) {
    ASSERT_NO_FATAL_FAILURE(run_until(rows_since(random() % 300)));
    fill(kLoad);  // the last turn may have answered all of them
    for (int i = 0; i < 10; ++i) {
      const auto key = *std::next(waiting_.begin(), static_cast<long>(random() % waiting_.size()));
      EXPECT_TRUE(fleet_->texts().cancel(key));
      EXPECT_FALSE(fleet_->texts().cancel(key));
      waiting_.erase(key);
    }
    if (const auto pid = device(random() % 2).pid()) ::kill(*pid, SIGKILL);
  }
  finish();
  EXPECT_TRUE(failed_.empty());
  EXPECT_GT(device(0).restart_count + device(1).restart_count, 5U);
}

TEST_F(FleetFaultsTest, ItsSpeedIsKnownBeforeTheFirstText) {
  auto model = canary_model();
  model.is_measured_at_load = true;
  start(R"({"cpu:0": {"batch_us_per_token": 100}, "cpu:1": {"batch_us_per_token": 400}})", 2,
        std::move(model));
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return are_ready(); }, 0));
  // 10,000 and 2,500 tokens a second; sleeping takes longer than told, most on a busy machine.
  const auto speed = fleet_->placement().dispatcher().tokens_per_second(kModel);
  ASSERT_TRUE(speed);
  EXPECT_GT(*speed, 0.05 * 12'500);
  EXPECT_LE(*speed, 12'500);
  EXPECT_EQ(device(0).text_count + device(1).text_count, 0U);
}

TEST_F(FleetFaultsTest, AStoppedWorkerIsQuarantinedAndComesBackByItsCanary) {
  start("{}");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return are_ready() && by_device_[1] > 200; }));
  const auto pid = device(1).pid();
  ::kill(*pid, SIGSTOP);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Quarantined); }));
  EXPECT_EQ(device(1).reason.substr(0, 13), "no answer in ");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Ready); }));
  EXPECT_NE(device(1).pid(), pid);
  EXPECT_TRUE(device(1).last_canary->is_well);
  EXPECT_EQ(device(1).quarantine_count, 1U);
  finish();
  EXPECT_TRUE(failed_.empty());
}

TEST_F(FleetFaultsTest, ASlowDeviceIsQuarantinedAliveAndComesBackWhenItIsWell) {
  start(R"({"cpu:0": {"batch_us_per_token": 20},
            "cpu:1": {"batch_us_per_token": 20, "slow_after_s": 0, "slow_factor": 200,
                      "ill_file": "@"}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return are_ready() && device(1).batch_count > 40; }));
  fall_ill();
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Quarantined); }));
  const auto pid = device(1).pid();
  EXPECT_EQ(device(1).reason, "its batches take more than 5 times as long as they did");
  EXPECT_EQ(device(1).in_flight_texts, 0U);
  recover();
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Ready); }));
  EXPECT_EQ(device(1).pid(), pid);
  finish();
  EXPECT_TRUE(failed_.empty());
  EXPECT_EQ(device(0).quarantine_count, 0U);
}

TEST_F(FleetFaultsTest, TheLastDeviceIsNotQuarantinedForSlowness) {
  start(R"({"cpu:0": {"batch_us_per_token": 20, "slow_after_s": 0.3, "slow_factor": 20,
                      "recover_after_s": 2}})",
        1);
  ASSERT_NO_FATAL_FAILURE(run_until([this] {
    EXPECT_FALSE(is(0, GroupState::Quarantined));
    return row_count_ > 0 && device(0).ready_seconds > 2;
  }));
  finish();
  EXPECT_EQ(device(0).quarantine_count, 0U);
}

TEST_F(FleetFaultsTest, ALiarIsEndedAndComesBackOnlyByARightCanary) {
  start(R"({"cpu:1": {"lie_after_s": 0, "ill_file": "@"}})");
  liar_ = 1;
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return are_ready(); }));
  const auto right = fleet_->models().canary_rows(kModel);
  ASSERT_EQ(right.size(), 1U);
  const auto pid = device(1).pid();
  fall_ill();
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Quarantined); }));
  EXPECT_EQ(device(1).reason, "it gave a wrong vector for its canary");
  const auto rows_of_liar = by_device_[1];
  recover();
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Ready); }));
  EXPECT_EQ(by_device_[1], rows_of_liar);  // no work before the right canary
  EXPECT_NE(device(1).pid(), pid);
  EXPECT_EQ(fleet_->models().canary_rows(kModel), right);
  EXPECT_EQ(device(0).quarantine_count, 0U);
  liar_ = SIZE_MAX;
  ASSERT_NO_FATAL_FAILURE(run_until(rows_since(500)));
  finish();
  EXPECT_TRUE(failed_.empty());
}

TEST_F(FleetFaultsTest, AKeptCanaryRowConvictsALiarAtItsFirstLoad) {
  start("{}", 1);
  ASSERT_NO_FATAL_FAILURE(
      run_until([this] { return !fleet_->models().canary_rows(kModel).empty(); }));
  auto model = canary_model();
  model.canary_rows = fleet_->models().canary_rows(kModel);
  finish();
  start(R"({"cpu:0": {"lie_after_s": 0}})", 2, std::move(model));
  ASSERT_NO_FATAL_FAILURE(run_until(rows_since(500)));
  EXPECT_NE(device(0).state, GroupState::Ready);
  EXPECT_EQ(device(0).text_count, 0U);
  finish();
}

TEST_F(FleetFaultsTest, AWorkerThatCrashesAtItsStartIsTriedAgainWhileOthersServe) {
  start(R"({"cpu:1": {"crash_at_start": 4, "state_file": "@"}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] {
    return is(1, GroupState::Restarting) &&
           device(1).reason ==
               "worker ended with exit code 3; it last said: told to crash at start 3";
  }));
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Ready); }));
  EXPECT_EQ(device(1).restart_count, 4U);
  finish();
  EXPECT_TRUE(failed_.empty());
}

// Others wait for its greeting before they load anything, so it must not take a cold disk's time.
TEST_F(FleetFaultsTest, AWorkerThatHangsBeforeItGreetsIsStartedAgainSoonOnceAnotherHasGreeted) {
  start(R"({"cpu:1": {"hang_at_start": 1, "state_file": "@"}})");
  const auto begin = clock_.now();
  ASSERT_TRUE(fleet_->wait_for_greetings([] { return false; }));
  EXPECT_LT(clock_.now() - begin, std::chrono::seconds(100));  // a cold disk's are 120
  EXPECT_NE(notices_.find("cpu:1: no sign of life for "), std::string::npos) << notices_;
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return are_ready(); }));
  EXPECT_EQ(device(1).restart_count, 1U);
  finish();
  EXPECT_TRUE(failed_.empty());
}

TEST_F(FleetFaultsTest, APoisonousTextCostsTwoWorkersAndItself) {
  start(R"({"cpu:0": {"abort_on_token": 1077}, "cpu:1": {"abort_on_token": 1077}})");
  for (ItemKey key = 0; key < kTextCount; ++key) submit(key);
  finish();
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_.begin()->first, 77U);
  EXPECT_EQ(failed_.begin()->second.message,
            "this text alone makes the worker fail: signal 6 (Aborted)");
  EXPECT_EQ(row_count_, kTextCount - 1);
  EXPECT_LE(device(0).restart_count + device(1).restart_count, 2U);
}

TEST_F(FleetFaultsTest, ADeviceThatFailsEverythingIsAtFaultAndNotItsTexts) {
  start(R"({"cpu:0": {"batch_us_per_token": 5}, "cpu:1": {"fail_from_batch": 2}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return device(1).quarantine_count > 0; }));
  EXPECT_EQ(device(1).reason, "it failed at its canary: told to fail") << notices_;
  ASSERT_NO_FATAL_FAILURE(run_until(rows_since(1000)));
  expect_nothing_lost();
  EXPECT_EQ(device(1).text_count, 0U);
  EXPECT_EQ(device(0).quarantine_count, 0U);
}

TEST_F(FleetFaultsTest, AJobGivesUpADeviceThatFailsEverything) {
  gives_up_ = true;
  start(R"({"cpu:0": {"batch_us_per_token": 5}, "cpu:1": {"fail_from_batch": 2}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::GivenUp); }));
  EXPECT_EQ(device(1).reason, "it failed at its canary: told to fail") << notices_;
  EXPECT_EQ(device(1).restart_count, 2U);
  expect_nothing_lost();
}

TEST_F(FleetFaultsTest, AloneADeviceThatFailsEverythingIsStillAtFault) {
  gives_up_ = true;
  start(R"({"cpu:0": {"fail_from_batch": 2}})", 1);
  submit_all();
  auto stepped = fleet_->loop().step(milliseconds(100));
  for (const auto begin = clock_.now(); stepped && clock_.now() - begin < kPatience;) {
    stepped = fleet_->loop().step(milliseconds(100));
  }
  ASSERT_FALSE(stepped);
  EXPECT_EQ(stepped.error().message,
            "no device can work: cpu:0: it failed at its canary: told to fail");
  EXPECT_TRUE(failed_.empty());
}

TEST_F(FleetFaultsTest, ADeviceThatFailsAtAllButItsCanaryIsAtFault) {
  start(R"({"cpu:0": {"batch_us_per_token": 5}, "cpu:1": {"fail_from_token": 1000}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return device(1).quarantine_count > 0; }));
  EXPECT_NE(notices_.find("quarantined: it fails at b"), std::string::npos) << notices_;
  expect_nothing_lost();
}

// There is nothing to ask it: that another device can do what it cannot tells.
TEST_F(FleetFaultsTest, WithoutACanaryADeviceThatFailsEverythingIsAtFault) {
  start(R"({"cpu:0": {"batch_us_per_token": 5}, "cpu:1": {"fail_from_batch": 1}})", 2,
        FleetModel());
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return device(1).quarantine_count > 0; }));
  EXPECT_NE(notices_.find("quarantined: it fails at b"), std::string::npos) << notices_;
  EXPECT_EQ(notices_.find("canary"), std::string::npos) << notices_;
  expect_nothing_lost();
  EXPECT_EQ(device(1).text_count, 0U);
  EXPECT_EQ(device(0).quarantine_count, 0U);
}

TEST_F(FleetFaultsTest, ATextThatFailsEverywhereHasItsErrorAndNoDeviceIsBlamed) {
  start(R"({"cpu:0": {"fail_on_token": 1077}, "cpu:1": {"fail_on_token": 1077}})");
  submit_all();
  finish();
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_.begin()->first, 77U);
  EXPECT_EQ(failed_.begin()->second.message, "told to fail");
  EXPECT_EQ(row_count_, kTextCount - 1);
  EXPECT_EQ(device(0).restart_count + device(1).restart_count, 0U) << notices_;
}

TEST_F(FleetFaultsTest, ADeviceWhoseRowsAreNotNumbersIsAtFault) {
  start(R"({"cpu:0": {"batch_us_per_token": 5}, "cpu:1": {"nan_from_batch": 2}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return device(1).quarantine_count > 0; }));
  EXPECT_NE(notices_.find("not finite"), std::string::npos) << notices_;
  ASSERT_NO_FATAL_FAILURE(run_until(rows_since(1000)));
  expect_nothing_lost();
  EXPECT_EQ(device(1).text_count, 0U);
}

TEST_F(FleetFaultsTest, ARowThatIsNoNumberOnOneDeviceComesFromAnother) {
  start(R"({"cpu:0": {"batch_us_per_token": 5}, "cpu:1": {"nan_on_token": 1077}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return device(1).quarantine_count > 0; }));
  EXPECT_NE(notices_.find("it gives no finite vector for texts that cpu:0 can"), std::string::npos)
      << notices_;
  expect_nothing_lost();
}

TEST_F(FleetFaultsTest, ATextWhoseRowIsNoNumberAnywhereHasItsError) {
  start(R"({"cpu:0": {"nan_on_token": 1077}, "cpu:1": {"nan_on_token": 1077}})");
  submit_all();
  finish();
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_.begin()->first, 77U);
  EXPECT_EQ(failed_.begin()->second.kind, ErrorKind::Unsupported);
  EXPECT_EQ(failed_.begin()->second.message,
            "the vector of this text is not finite (NaN or infinity)");
  EXPECT_EQ(row_count_, kTextCount - 1);
  EXPECT_EQ(device(0).restart_count + device(1).restart_count, 0U) << notices_;
}

TEST_F(FleetFaultsTest, AnAnswerThatDoesNotFitItsBatchEndsTheWorkerAndLosesNothing) {
  for (const char* fault : {"short_from_batch", "wide_from_batch"}) {
    SCOPED_TRACE(fault);
    by_device_.clear();
    notices_.clear();
    start(fmt::format(R"({{"cpu:0": {{"batch_us_per_token": 5}}, "cpu:1": {{"{}": 2}}}})", fault));
    ASSERT_NO_FATAL_FAILURE(run_until([this] { return device(1).restart_count > 0; }));
    EXPECT_NE(notices_.find("rows have 8; it is killed"), std::string::npos) << notices_;
    ASSERT_NO_FATAL_FAILURE(run_until(rows_since(500)));
    expect_nothing_lost();
    EXPECT_EQ(device(1).text_count, 0U);
  }
}

TEST_F(FleetFaultsTest, AHangInAFirstBatchIsNoticedByWhatTheCanaryCost) {
  start(R"({"cpu:0": {"batch_us_per_token": 5}, "cpu:1": {"hang_at_batch": 2}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Quarantined); }));
  EXPECT_EQ(device(1).reason, "no answer in 2.0 s");
  expect_nothing_lost();
}

TEST_F(FleetFaultsTest, AJobGoesOnWithoutADeviceThatCannotLoad) {
  gives_up_ = true;
  start(R"({"cpu:1": {"fail_load": "Unsupported"}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::GivenUp); }));
  ASSERT_NO_FATAL_FAILURE(run_until(rows_since(500)));
  EXPECT_EQ(device(1).reason, "the model cannot be loaded: told not to load");
  EXPECT_NE(notices_.find("cpu:1: the model cannot be loaded: told not to load; it is given up"),
            std::string::npos);
  expect_nothing_lost();
}

TEST_F(FleetFaultsTest, AServerPutsADeviceAsideThatCannotLoadUntilAnOperatorStartsIt) {
  start("{}");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return are_ready(); }));
  ::setenv("FAULTY_WORKER", R"({"cpu:1": {"fail_load": "Unsupported"}})", 1);
  ::kill(*device(1).pid(), SIGKILL);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::GivenUp); }));
  EXPECT_EQ(device(1).reason, "a model cannot be loaded: told not to load")
      << "and not how the life before this one ended";
  ASSERT_NO_FATAL_FAILURE(run_until(rows_since(500)));
  EXPECT_TRUE(is(1, GroupState::GivenUp)) << states();

  std::vector<CanaryResult> results;
  fleet_->admin().check(std::chrono::seconds(10), [&](const auto& all) { results = all; });
  ASSERT_NO_FATAL_FAILURE(run_until([&] { return results.size() == 2; }));
  EXPECT_TRUE(results[0].is_well) << results[0].reason;
  EXPECT_FALSE(results[1].is_well);
  EXPECT_EQ(results[1].reason, "given up: a model cannot be loaded: told not to load");

  ::setenv("FAULTY_WORKER", "{}", 1);
  fleet_->admin().restart(1);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Ready); }));
  EXPECT_EQ(device(1).reason, "");
  expect_nothing_lost();
}

TEST_F(FleetFaultsTest, ADeviceThatCannotLoadAfterItsQuarantineIsNotSaidToAnswer) {
  start(R"({"cpu:0": {"batch_us_per_token": 5}, "cpu:1": {"fail_from_batch": 2}})");
  ::setenv("FAULTY_WORKER", R"({"cpu:1": {"fail_load": "Corrupt"}})", 1);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::GivenUp); }));
  EXPECT_GT(device(1).quarantine_count, 0U);
  EXPECT_EQ(device(1).reason, "a model cannot be loaded: told not to load");
  EXPECT_NE(notices_.find("its new worker cannot load a model"), std::string::npos) << notices_;
  EXPECT_EQ(notices_.find("answers as it should"), std::string::npos) << notices_;
  expect_nothing_lost();
}

TEST_F(FleetFaultsTest, AWorkerThatNoSignalEndsHoldsNobodyUp) {
  start(R"({"cpu:1": {"unkillable_s": 60}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return are_ready() && row_count_ > 100; }));
  const auto tracer = tracer_of(*device(1).pid());
  if (tracer == 0) GTEST_SKIP() << "no tracing here";
  ::kill(*device(1).pid(), SIGSTOP);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Quarantined); }));
  expect_nothing_lost();
  const auto pid = *device(1).pid();
  fleet_->loop().stop();
  EXPECT_NE(notices_.find("was killed and does not end: it is left to the system"),
            std::string::npos)
      << notices_;
  EXPECT_EQ(::kill(pid, 0), 0) << "it is still there";
  ::kill(tracer, SIGKILL);  // lets it go
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
}

// Its socket is at its end, and then it stays in its exit: its texts are for others all the same.
TEST_F(FleetFaultsTest, TextsOfAWorkerThatDoesNotEndGoToOthers) {
  start(
      R"({"cpu:0": {"batch_us_per_token": 5}, "cpu:1": {"unkillable_s": 60, "close_at_batch": 9}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return are_ready(); }, 0));
  const auto pid = *device(1).pid();
  const auto tracer = tracer_of(pid);
  if (tracer == 0) GTEST_SKIP() << "no tracing here";
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Restarting); }));
  expect_nothing_lost();
  EXPECT_EQ(device(1).pid(), pid) << "it was waited for";
  fleet_->loop().stop();
  ::kill(tracer, SIGKILL);  // lets it go
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
}

// A batch waits for the model to be loaded, longer than it may take alone.
TEST_F(FleetFaultsTest, ABatchThatRanBesideALoadIsNotKilledForItWhenTheLoadEnds) {
  start(R"({"cpu:0": {"load_ms": 2000, "batch_us_per_token": 1000}})", 1);
  ASSERT_NO_FATAL_FAILURE(run_until(rows_since(200)));
  fleet_->models().load(kModel + 1, canary_model());
  ASSERT_NO_FATAL_FAILURE(run_until([this] {
    const auto models = device(0).models;
    const auto second = models.find(kModel + 1);
    return second != models.end() && second->second.state == ModelState::Ready;
  }));
  EXPECT_EQ(device(0).quarantine_count, 0U) << notices_;
  finish();
  EXPECT_TRUE(failed_.empty());
}

TEST_F(FleetFaultsTest, UnloadingAModelEndsTheQuestionWhoseFaultItsBatchWas) {
  start(R"({"cpu:0": {"fail_on_token": 1077, "batch_us_per_token": 20000}})", 1);
  fleet_->models().load(kModel + 1, canary_model());
  ASSERT_NO_FATAL_FAILURE(
      run_until([this] { return device(0).models.size() == 2 && are_ready(); }, 0));
  submit(77);
  ASSERT_NO_FATAL_FAILURE(
      run_until([this] { return notices_.find("its canary is asked") != std::string::npos; }, 0));
  fleet_->models().unload(kModel);
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_.begin()->second.message, "the model was unloaded");
  submit(78, kModel + 1);
  finish();
  EXPECT_EQ(row_count_, 1U);
}

TEST_F(FleetFaultsTest, UnloadFailsWhatWaitsAndLetsWhatRunsComeBack) {
  start(R"({"cpu:0": {"batch_us_per_token": 100}})", 1);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return device(0).in_flight_texts > 0; }, 500));
  const auto running = device(0).in_flight_texts;
  const auto in_flight = waiting_.size();
  const auto rows = row_count_;
  fleet_->models().unload(kModel);
  finish();
  EXPECT_EQ(row_count_ - rows, running);
  ASSERT_EQ(failed_.size(), in_flight - running);
  EXPECT_EQ(failed_.begin()->second.kind, ErrorKind::NotFound);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return device(0).models.empty(); }, 0));

  submit(next_key_++);
  finish();
  EXPECT_EQ(failed_.rbegin()->second.message, "no such model is loaded");
  fleet_->models().load(kModel + 1, canary_model());
  submit(next_key_++, kModel + 1);
  finish();
  EXPECT_EQ(row_count_ - rows, running + 1);
}

TEST_F(FleetFaultsTest, ADrainedDeviceEndsWhatItHasAndStartsAgainWhenTold) {
  start(R"({"cpu:0": {"batch_us_per_token": 20}, "cpu:1": {"batch_us_per_token": 20}})");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return are_ready() && row_count_ > 200; }));
  fleet_->admin().drain(1);
  EXPECT_TRUE(is(1, GroupState::Draining));
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return is(1, GroupState::Drained); }));
  EXPECT_FALSE(device(1).pid());
  EXPECT_TRUE(device(1).is_to_rest && device(1).is_asked_for);
  const auto rows = by_device_[1];
  ASSERT_NO_FATAL_FAILURE(run_until(rows_since(300)));
  EXPECT_EQ(by_device_[1], rows);
  fleet_->admin().resume(1);
  ASSERT_NO_FATAL_FAILURE(run_until([&] { return by_device_[1] > rows; }));

  const auto pid = device(0).pid();
  fleet_->admin().restart(0);
  ASSERT_NO_FATAL_FAILURE(
      run_until([&] { return is(0, GroupState::Ready) && device(0).pid() != pid; }));
  EXPECT_TRUE(!device(0).is_to_rest && device(0).is_asked_for);
  ::kill(*device(0).pid(), SIGKILL);
  ASSERT_NO_FATAL_FAILURE(run_until([&] { return !device(0).is_asked_for; }));
  finish();
  EXPECT_TRUE(failed_.empty());
}

TEST_F(FleetFaultsTest, ACheckAsksEveryDeviceAndTellsWhichDoesNotAnswer) {
  canary_period_ = Duration{0};  // else the answer of an earlier one may still be read
  start("{}");
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return are_ready(); }, 0));
  const auto check = [this](Duration limit) {
    std::optional<std::vector<CanaryResult>> results;
    fleet_->admin().check(limit, [&](const std::vector<CanaryResult>& all) { results = all; });
    run_until([&] { return results.has_value(); }, 0);
    return results.value_or(std::vector<CanaryResult>(2));
  };
  auto results = check(kPatience);
  EXPECT_TRUE(results[0].is_well && results[1].is_well);
  EXPECT_TRUE(results[1].seconds);
  ::kill(*device(1).pid(), SIGSTOP);
  results = check(std::chrono::seconds(1));
  EXPECT_TRUE(results[0].is_well);
  EXPECT_FALSE(results[1].is_well);
  EXPECT_EQ(results[1].reason, "no answer in 1.0 s");
}

TEST_F(FleetFaultsTest, ModelsAreServedWhereTheyAreAndApart) {
  auto everywhere = canary_model();
  start("{}", 2, everywhere);
  FleetModel one;
  one.devices = {1};
  fleet_->models().load(kModel + 1, one);
  std::uint64_t before = 0;
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return are_ready(); }));
  finish();
  before = by_device_[0];
  for (ItemKey i = 0; i < 300; ++i) submit(next_key_++, kModel + 1);
  finish();
  EXPECT_EQ(by_device_[0], before);
  EXPECT_EQ(fleet_->models().dim(kModel + 1), 8U);
  EXPECT_EQ(device(0).models.size(), 1U);
  EXPECT_EQ(device(1).models.size(), 2U);
}

}  // namespace
}  // namespace muster
