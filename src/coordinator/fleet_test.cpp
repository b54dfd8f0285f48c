// Real processes: every test starts zero_worker programs (stand_ins/zero_worker) and kills some of
// them.

#include "coordinator/fleet.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>
#include <utility>

#include "base/build_info.h"
#include "coordinator/runnable_threads.h"

namespace muster {
namespace {

constexpr ModelId kModel = 1;

class FleetTest : public testing::Test {
 protected:
  ~FleetTest() override { ::unsetenv("ZERO_WORKER"); }

  void start(const char* orders, std::uint32_t device_count = 2, bool gives_up = true) {
    ::setenv("ZERO_WORKER", orders, 1);
    FleetOptions options;
    for (std::uint32_t i = 0; i < device_count; ++i) {
      options.devices.emplace_back().index = i;
    }
    options.worker_program = std::string(MUSTER_BINARY_DIR) + "/bin/zero_worker";
    options.batch_tokens = 100;
    options.gives_up = gives_up;
    options.idle = idle_;
    options.is_low_latency = is_low_latency_;
    options.build = std::string(build_name());
    FleetEvents events;
    events.on_row = [this](ItemKey key, std::span<const std::byte> row, std::size_t) {
      ++row_counts_[key];
      std::memcpy(&first_[key], row.data(), sizeof(float));
      std::memcpy(&second_[key], row.data() + sizeof(float), sizeof(float));
      std::memcpy(&expects_[key], row.data() + 4 * sizeof(float), sizeof(float));
    };
    events.on_item_failed = [this](ItemKey key, const Error& error) { failed_[key] = error; };
    events.on_notice = [this](const std::string& notice, std::optional<std::size_t>) {
      notices_ += notice + "\n";
    };
    auto started = Fleet::start(std::move(options), std::move(events), clock_);
    ASSERT_TRUE(started) << started.error().message;
    fleet_ = *std::move(started);
  }

  /// Text `key` has the ids [1000 + key, 0, 0, …], so that an echoed row names its text.
  void submit(ItemKey count) {
    for (ItemKey key = 0; key < count; ++key) {
      std::vector<std::uint32_t> ids(3 + key % 5, 0);
      ids[0] = static_cast<std::uint32_t>(1000 + key);
      const auto token_count = static_cast<std::uint32_t>(ids.size());
      fleet_->texts().submit({.item = {.key = key, .model = kModel, .token_count = token_count},
                              .ids = std::move(ids)});
    }
  }

  /// Loads every device and waits until all can work.
  void load_all() {
    fleet_->models().load(kModel, {});
    const auto is_ready = [](const GroupStatus& device) {
      return device.state == GroupState::Ready;
    };
    for (auto status = fleet_->groups(); !std::all_of(status.begin(), status.end(), is_ready);
         status = fleet_->groups()) {
      ASSERT_TRUE(fleet_->loop().step(std::chrono::seconds(10)));
    }
  }

  Status run_until_done() {
    while (fleet_->texts().pending_count() > 0)
      MUSTER_TRY(fleet_->loop().step(std::chrono::seconds(10)));
    return Done{};
  }

  void expect_every_row_once(ItemKey count) {
    for (ItemKey key = 0; key < count; ++key) {
      if (failed_.count(key) > 0) continue;
      SCOPED_TRACE(key);
      EXPECT_EQ(row_counts_[key], 1);
      EXPECT_EQ(first_[key], static_cast<float>(1000 + key));
      EXPECT_EQ(second_[key], static_cast<float>(3 + key % 5));
    }
  }

  std::size_t told_count(const std::string& words) const {
    std::size_t count = 0;
    for (auto at = notices_.find(words); at != std::string::npos; ++count) {
      at = notices_.find(words, at + 1);
    }
    return count;
  }

  /// Those of this test: a worker that no signal ended in another one may still be here.
  std::vector<pid_t> worker_pids() const {
    auto pids = child_pids();
    std::erase_if(pids, [this](pid_t pid) {
      return std::find(pids_before_.begin(), pids_before_.end(), pid) != pids_before_.end();
    });
    return pids;
  }

  static std::vector<pid_t> child_pids() {
    std::vector<pid_t> pids;
    std::ifstream children("/proc/self/task/" + std::to_string(::getpid()) + "/children");
    for (pid_t pid = 0; children >> pid;) pids.push_back(pid);
    return pids;
  }

  const std::vector<pid_t> pids_before_ = child_pids();
  /// Runs as the steady clock does, and can be set ahead.
  class SetClock final : public Clock {
   public:
    TimePoint now() const override { return steady_.now() + ahead; }
    Duration ahead{0};

   private:
    SteadyClock steady_;
  };

  SetClock clock_;
  std::unique_ptr<Fleet> fleet_;
  bool is_low_latency_ = true;
  std::vector<std::size_t> idle_;  // devices
  std::map<ItemKey, int> row_counts_;
  std::map<ItemKey, float> first_;
  std::map<ItemKey, float> second_;
  std::map<ItemKey, float> expects_;
  std::map<ItemKey, Error> failed_;
  std::string notices_;
};

const auto kNever = [] { return false; };

// What `muster top` and ps name a worker by.
TEST_F(FleetTest, AWorkersCommandLineNamesItsDeviceAndModels) {
  start("echo", 1);
  FleetModel model;
  model.load.model.model_folder = "/models/bge-small";
  fleet_->models().load(kModel, std::move(model));
  const auto is_ready = [&] { return fleet_->groups().front().state == GroupState::Ready; };
  while (!is_ready()) ASSERT_TRUE(fleet_->loop().step(std::chrono::seconds(10)));
  ASSERT_EQ(worker_pids().size(), 1U);
  std::ifstream file(fmt::format("/proc/{}/cmdline", worker_pids().front()));
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  using std::string_literals::operator""s;
  EXPECT_NE(line.find("\0--device\0cpu:0\0"s), std::string::npos) << line;
  EXPECT_NE(line.find("\0--models\0bge-small\0"s), std::string::npos) << line;
}

TEST_F(FleetTest, TellsAnIdleWorkerToExpectABatch) {
  start("echo count_expects", 1);
  ASSERT_TRUE(fleet_->wait_for_greetings(kNever));
  fleet_->texts().expect();  // it cannot take any yet
  load_all();
  const auto begin = clock_.now();
  fleet_->texts().expect();
  fleet_->texts().expect();  // within the time in which it is awake
  const bool was_quick = clock_.now() - begin < kExpectTime;
  submit(1);
  fleet_->texts().expect();  // what it could announce is here
  ASSERT_TRUE(run_until_done());
  EXPECT_EQ(row_counts_[0], 1);
  EXPECT_TRUE(expects_[0] == 1 || !was_quick) << expects_[0];

  submit(1);
  ASSERT_TRUE(run_until_done());
  EXPECT_EQ(row_counts_[0], 2);
  EXPECT_EQ(expects_[0], 0);
}

// Rows of 1.2 MB, so that a batch's answer is read in many steps, most of which find nothing whole.
TEST_F(FleetTest, RowsThatComeInPartsAreAllHere) {
  start("echo dim=300000");
  load_all();
  submit(40);
  ASSERT_TRUE(run_until_done());
  expect_every_row_once(40);
  EXPECT_EQ(notices_, "");
}

// As after `docker pause`, in an owner that waits by itself and steps when something has come.
TEST_F(FleetTest, APauseOutsideOfItsStepIsNoSilenceOfAWorker) {
  start("hang_on=1000", 1);
  load_all();
  submit(1);
  ASSERT_TRUE(fleet_->loop().step(Duration{0}));
  clock_.ahead += std::chrono::minutes(10);
  ASSERT_TRUE(fleet_->loop().step(Duration{0}));
  EXPECT_EQ(notices_, "");
  EXPECT_EQ(fleet_->groups()[0].restart_count, 0U);
  EXPECT_EQ(fleet_->texts().pending_count(), 1U);
}

// A real process that computes, and nobody says for how long.
TEST_F(FleetTest, AWorkerThatComputesHasMoreTime) {
  start("spin_on=1000", 1);
  load_all();
  submit(1);
  ASSERT_TRUE(fleet_->loop().step(Duration{0}));
  const auto pid = fleet_->groups()[0].pid();
  ASSERT_TRUE(pid);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!has_runnable_thread(*pid) && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  for (int i = 0; i < 100 && notices_.empty(); ++i) {
    clock_.ahead += std::chrono::seconds(5);
    ASSERT_TRUE(fleet_->loop().step(Duration{0}));
  }
  EXPECT_NE(notices_.find("but its threads are runnable"), std::string::npos) << notices_;
  EXPECT_EQ(fleet_->groups()[0].restart_count, 0U);
}

TEST_F(FleetTest, TellsNoWorkerToExpectABatchWhereThatIsOff) {
  is_low_latency_ = false;
  start("echo count_expects", 1);
  ASSERT_TRUE(fleet_->wait_for_greetings(kNever));
  load_all();
  fleet_->texts().expect();
  submit(1);
  ASSERT_TRUE(run_until_done());
  EXPECT_EQ(row_counts_[0], 1);
  EXPECT_EQ(expects_[0], 0);
}

TEST_F(FleetTest, PlacesWhatWasSubmittedBeforeItLooksAtWhatCame) {
  start("echo", 1);
  ASSERT_TRUE(fleet_->wait_for_greetings(kNever));
  load_all();
  submit(1);
  const auto due = fleet_->loop().next_deadline();
  EXPECT_LE(due, clock_.now());
  fleet_->loop().place_submitted();
  EXPECT_EQ(fleet_->groups()[0].in_flight_texts, 1U);
  EXPECT_EQ(fleet_->texts().pending_count(), 1U);
  const auto now = clock_.now();
  EXPECT_GT(fleet_->loop().next_deadline(), now) << "nothing is left to do until the row comes";
  ASSERT_TRUE(run_until_done());
  EXPECT_EQ(row_counts_[0], 1);
}

TEST_F(FleetTest, WhatIsAskedForBetweenTwoStepsMakesTheNextOneDue) {
  start("echo");
  ASSERT_TRUE(fleet_->wait_for_greetings(kNever));
  load_all();
  fleet_->loop().place_submitted();
  const auto now = clock_.now();
  EXPECT_GT(fleet_->loop().next_deadline(), now) << "all is done";
  fleet_->admin().drain(0);
  const auto due = fleet_->loop().next_deadline();  // before the clock: "now" is an answer
  EXPECT_LE(due, clock_.now());
}

TEST_F(FleetTest, GivesEveryTextItsOwnRowOnce) {
  start("echo");
  const auto classes = fleet_->wait_for_greetings(kNever);
  ASSERT_TRUE(classes) << classes.error().message;
  EXPECT_EQ(*classes, std::vector<std::string>{"zero"});
  load_all();
  submit(500);
  ASSERT_TRUE(run_until_done());
  expect_every_row_once(500);
  const auto status = fleet_->groups();
  EXPECT_EQ(status[0].text_count + status[1].text_count, 500U);
  EXPECT_GT(status[0].text_count, 0U);
  EXPECT_GT(status[1].text_count, 0U);
  fleet_->loop().stop();
}

TEST_F(FleetTest, LosesNothingWhenWorkersAreKilled) {
  start("echo");
  fleet_->models().load(kModel, {});
  submit(2000);
  std::size_t done_before = 0;
  for (int kill_count = 0; fleet_->texts().pending_count() > 0;) {
    ASSERT_TRUE(fleet_->loop().step(std::chrono::seconds(10)));
    // A kill after every hundred rows or so: at any moment of a worker's life.
    const auto pids = worker_pids();
    if (kill_count < 15 && row_counts_.size() >= done_before + 100 && !pids.empty()) {
      ::kill(pids[static_cast<std::size_t>(kill_count) % pids.size()], SIGKILL);
      done_before = row_counts_.size();
      ++kill_count;
    }
  }
  expect_every_row_once(2000);
  EXPECT_TRUE(failed_.empty());
  const auto status = fleet_->groups();
  EXPECT_GT(status[0].restart_count + status[1].restart_count, 5U);
}

TEST_F(FleetTest, GoesOnWhenAllWorkersAreKilledAtOnce) {
  start("echo");
  fleet_->models().load(kModel, {});
  submit(1000);
  while (row_counts_.size() < 200) ASSERT_TRUE(fleet_->loop().step(std::chrono::seconds(10)));
  for (const auto pid : worker_pids()) ::kill(pid, SIGKILL);
  ASSERT_TRUE(run_until_done());
  expect_every_row_once(1000);
}

TEST_F(FleetTest, EndsAWorkerThatIsSilentTooLong) {
  start("echo");
  fleet_->models().load(kModel, {});
  submit(1000);
  while (row_counts_.size() < 400) ASSERT_TRUE(fleet_->loop().step(std::chrono::seconds(10)));
  ::kill(worker_pids().front(), SIGSTOP);
  ASSERT_TRUE(run_until_done());
  expect_every_row_once(1000);
}

TEST_F(FleetTest, FindsTheTextThatKillsAndDoesTheRest) {
  start("echo abort_on=1077");
  fleet_->models().load(kModel, {});
  submit(200);
  ASSERT_TRUE(run_until_done());
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_.begin()->first, 77U);
  EXPECT_EQ(failed_.begin()->second.message,
            "this text alone makes the worker fail: signal 6 (Aborted)");
  expect_every_row_once(200);
}

TEST_F(FleetTest, FindsTheTextThatFailsWithoutADeath) {
  start("echo fail_on=1042");
  fleet_->models().load(kModel, {});
  submit(100);
  ASSERT_TRUE(run_until_done());
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_.begin()->first, 42U);
  expect_every_row_once(100);
  EXPECT_EQ(fleet_->groups()[0].restart_count, 0U);
}

TEST_F(FleetTest, HalvesTheBatchWhenTheDeviceIsFull) {
  start("echo oom_above=20");
  fleet_->models().load(kModel, {});
  submit(300);
  ASSERT_TRUE(run_until_done());
  EXPECT_TRUE(failed_.empty());
  expect_every_row_once(300);
}

TEST_F(FleetTest, SaysWhyNoDeviceCanWork) {
  start("exit_at_start");
  const auto classes = fleet_->wait_for_greetings(kNever);
  ASSERT_FALSE(classes);
  EXPECT_EQ(classes.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(classes.error().message,
            "no device can work: cpu:0: worker ended with exit code 3; it last said: told to exit");
}

TEST_F(FleetTest, SaysWhyNoDeviceCanWorkWhereTheFirstIsIdle) {
  idle_ = {0};
  start("exit_at_start");
  const auto classes = fleet_->wait_for_greetings(kNever);
  ASSERT_FALSE(classes);
  EXPECT_EQ(classes.error().message,
            "no device can work: cpu:1: worker ended with exit code 3; it last said: told to exit");
}

TEST_F(FleetTest, PassesOnWhyTheModelCannotBeLoaded) {
  start("fail_load");
  fleet_->models().load(kModel, {});
  submit(1);
  const auto status = run_until_done();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Corrupt);
  EXPECT_NE(status.error().message.find("told not to load"), std::string::npos);
}

TEST_F(FleetTest, AModelThatCannotBeLoadedIsAStateOfAServer) {
  start("fail_load", 2, /*gives_up=*/false);
  fleet_->models().load(kModel, {});
  submit(1);
  ASSERT_TRUE(run_until_done());
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_[0].kind, ErrorKind::Unavailable);
  EXPECT_NE(failed_[0].message.find("told not to load"), std::string::npos);
  for (const auto& device : fleet_->groups()) {
    EXPECT_EQ(device.models.at(kModel).state, ModelState::Failed);
    EXPECT_EQ(device.models.at(kModel).reason, "told not to load");
    EXPECT_EQ(device.state, GroupState::GivenUp);
    EXPECT_EQ(device.reason, "a model cannot be loaded: told not to load");
  }
}

TEST_F(FleetTest, AServerGoesOnTryingDevicesThatCannotStart) {
  start("exit_at_start", 2, /*gives_up=*/false);
  const auto classes = fleet_->wait_for_greetings(kNever);
  ASSERT_FALSE(classes);
  EXPECT_EQ(classes.error().kind, ErrorKind::Unavailable);
  for (const auto& device : fleet_->groups()) {
    EXPECT_EQ(device.state, GroupState::Restarting);
    EXPECT_GE(device.restart_count, 2U);
  }
}

TEST_F(FleetTest, MeasuresPrecisionsOnOneDeviceAndThenUsesAll) {
  start("echo");
  const auto verdict = fleet_->probe({}, kNever);
  ASSERT_TRUE(verdict) << verdict.error().message;
  ASSERT_EQ(verdict->verdict.measures.size(), 1U);
  EXPECT_EQ(verdict->verdict.measures[0].tokens_per_second, 1000);

  load_all();
  submit(500);
  ASSERT_TRUE(run_until_done());
  for (const auto& device : fleet_->groups()) EXPECT_GT(device.text_count, 0U);
}

// Both stop at it, and the second is asked once the first has ended.
TEST_F(FleetTest, MeasuresPrecisionsOnAnotherDeviceWhereAWorkerEnds) {
  start("hang_probe");
  ASSERT_TRUE(fleet_->wait_for_greetings(kNever));
  const std::string told = "cpu:1: precisions are measured here, as the worker on cpu:0 ended\n";
  bool was_killed = false;
  const auto verdict = fleet_->probe({}, [&] {
    if (!std::exchange(was_killed, true)) ::kill(*fleet_->groups()[0].pid(), SIGKILL);
    return notices_.find(told) != std::string::npos;
  });
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().kind, ErrorKind::Cancelled);
}

// As by a machine without memory, in a job and in a server that does not listen yet.
TEST_F(FleetTest, NothingIsMeasuredWhereWorkersEndAgainAndAgain) {
  for (const bool gives_up : {true, false}) {
    notices_.clear();
    start("kill_probe", 2, gives_up);
    ASSERT_TRUE(fleet_->wait_for_greetings(kNever));
    const auto verdict = fleet_->probe({}, [this] { return told_count("worker ended with") > 6; });
    ASSERT_FALSE(verdict);
    EXPECT_EQ(verdict.error().kind, ErrorKind::Unavailable);
    const auto& message = verdict.error().message;
    EXPECT_TRUE(message.starts_with("no device can measure precisions: cpu:")) << message;
    EXPECT_TRUE(message.ends_with(": worker ended with signal 9 (Killed) from outside")) << message;
    EXPECT_EQ(told_count("worker ended with"), 6U) << notices_;
  }
}

TEST_F(FleetTest, AGpuWithoutItsDriverIsNotAskedToMeasure) {
  start("none_on=0");
  ASSERT_TRUE(fleet_->wait_for_greetings(kNever));
  const auto verdict = fleet_->probe({}, kNever);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->engine_class, "zero");
}

// For a moment it is the only one that serves.
TEST_F(FleetTest, AGpuWithoutItsDriverIsNotAskedWhereTheOtherWorkerEnds) {
  start("none_on=0 hang_probe");
  ASSERT_TRUE(fleet_->wait_for_greetings(kNever));
  ::setenv("ZERO_WORKER", "none_on=0", 1);
  bool was_killed = false;
  const auto verdict = fleet_->probe({}, [&] {
    if (!std::exchange(was_killed, true)) ::kill(*fleet_->groups()[1].pid(), SIGKILL);
    return false;
  });
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->engine_class, "zero");
  EXPECT_EQ(fleet_->groups()[1].restart_count, 1U);
}

TEST_F(FleetTest, AGpuWithoutItsDriverTellsWhyNothingIsMeasured) {
  start("none_on=0", 1);
  const auto verdict = fleet_->probe({}, kNever);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().message, "told to have no driver");
}

TEST_F(FleetTest, StopEndsEveryWorkerAndCountsTheirCpuTime) {
  start("echo");
  ASSERT_TRUE(fleet_->wait_for_greetings(kNever));
  EXPECT_EQ(worker_pids().size(), 2U);
  EXPECT_GT(fleet_->loop().stop(), 0.0);
  EXPECT_TRUE(worker_pids().empty());
}

TEST_F(FleetTest, AMissingWorkerProgramIsNamed) {
  FleetOptions options;
  options.devices.push_back({});
  options.worker_program = "/no/such/muster-worker";
  const auto started = Fleet::start(options, {}, clock_);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, ErrorKind::NotFound);
}

}  // namespace
}  // namespace muster
