#include "coordinator/measuring_groups.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "coordinator/fleet_fixture.h"

namespace muster {
namespace {

using Group = std::optional<std::size_t>;

constexpr auto kCpu = DeviceKind::Cpu;
constexpr auto kCuda = DeviceKind::Cuda;

/// Groups that serve, until a test says otherwise.
class MeasuringGroupsTest : public testing::Test {
 protected:
  /// One of each kind.
  void make(const std::vector<DeviceKind>& kinds) {
    groups_.emplace(kinds.size(), clock_);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      life(i).devices.front().kind = kinds[i];
      life(i).name = life(i).leader().name();
    }
    begin(kinds.size());
  }
  void begin(std::size_t count) { measuring_.emplace(*groups_, count); }

  GroupLife& life(std::size_t group) { return groups_->life_of(group); }

  void ask(std::size_t group) {
    EXPECT_EQ(measuring_->next(), Group(group));
    measuring_->on_asked(group);
  }
  void end(std::size_t group, const std::string& reason = "worker ended with exit code 3") {
    life(group).has_processes = life(group).is_greeted = false;
    life(group).reason = reason;
    measuring_->note_ends();
  }
  void start(std::size_t group) {
    ++life(group).restart_count;
    life(group).has_processes = life(group).is_greeted = true;
    life(group).reason.clear();
    measuring_->note_ends();
  }

  HandClock clock_;
  std::optional<FakeWorkerGroups> groups_;
  std::optional<MeasuringGroups> measuring_;
};

TEST_F(MeasuringGroupsTest, PrefersOneThatHasNotEndedAndThenTheKindOfTheFirst) {
  make({kCuda, kCpu, kCuda});
  ask(0);
  end(0);
  ask(2);
  end(2);
  ask(1);
  start(0);
  EXPECT_EQ(measuring_->next(), Group(1)) << "cuda:0 has ended once";
  end(1);
  EXPECT_EQ(measuring_->next(), Group(0));
  start(1);
  start(2);
  EXPECT_EQ(measuring_->next(), Group(0)) << "each has ended once";
}

TEST_F(MeasuringGroupsTest, NoneIsLeftWhereEachHasEndedThreeTimes) {
  make({kCpu, kCpu});
  for (int i = 0; i < 3; ++i) {
    for (const std::size_t group : {0U, 1U}) {
      ask(group);
      end(group, group == 0 ? "worker ended with exit code 3" : "no answer in 900.0 s");
      EXPECT_EQ(measuring_->is_one_left(), i < 2 || group == 0);
    }
    for (const std::size_t group : {0U, 1U}) start(group);
  }
  EXPECT_EQ(measuring_->next(), std::nullopt);
  EXPECT_EQ(measuring_->last_end(), "cpu:1: no answer in 900.0 s");
}

// Its worker ends once, and then two starts come to nothing.
TEST_F(MeasuringGroupsTest, OneThatCannotBeStartedAgainIsNotWaitedForWithoutEnd) {
  make({kCpu});
  end(0);
  for (const bool is_left : {true, false}) {
    ++life(0).restart_count;
    life(0).reason = "no processes are left";
    measuring_->note_ends();
    EXPECT_EQ(measuring_->is_one_left(), is_left);
  }
  EXPECT_EQ(measuring_->last_end(), "cpu:0: no processes are left");
}

TEST_F(MeasuringGroupsTest, WhatEndedBeforeDoesNotCount) {
  make({kCpu, kCpu});
  life(0).restart_count = 5;
  life(1).restart_count = 7;
  life(1).has_processes = life(1).is_greeted = false;
  begin(2);
  measuring_->note_ends();
  EXPECT_EQ(measuring_->next(), Group(0));
  EXPECT_EQ(measuring_->last_end(), "");
  start(1);
  EXPECT_EQ(measuring_->last_end(), "") << "that was the end of before";
}

TEST_F(MeasuringGroupsTest, AGpuWithoutItsDriverIsNotAskedWhileAnotherMayComeBack) {
  make({kCuda, kCuda});
  life(0).engine_class = "cuda/none/torch";
  ask(1);
  end(1);
  EXPECT_TRUE(measuring_->is_one_left());
  EXPECT_EQ(measuring_->next(), std::nullopt);
  start(1);
  ask(1);
  life(1).is_given_up = true;
  end(1);
  EXPECT_FALSE(measuring_->is_one_left());
  EXPECT_EQ(measuring_->last_end(), "cuda:1: worker ended with exit code 3");
}

TEST_F(MeasuringGroupsTest, AnyDeviceThatComputesIsPreferredToAGpuWithoutItsDriver) {
  make({kCuda, kCuda, kCpu});
  life(0).engine_class = "cuda/none/torch";
  ask(1);
  end(1);
  EXPECT_EQ(measuring_->next(), Group(2));
}

// It tells why it computes nothing.
TEST_F(MeasuringGroupsTest, AGpuWithoutItsDriverIsAskedWhereThereIsNoOther) {
  make({kCuda, kCuda});
  life(0).engine_class = "cuda/none/torch";
  life(1).engine_class = "";
  life(1).is_greeted = false;
  EXPECT_EQ(measuring_->next(), std::nullopt) << "the other one may yet greet";
  life(1).is_given_up = true;
  EXPECT_EQ(measuring_->next(), Group(0));
}

TEST_F(MeasuringGroupsTest, OneMeasuresAtATime) {
  make({kCpu, kCpu});
  EXPECT_EQ(measuring_->on_asked(1), "");
  life(1).is_probing = true;
  EXPECT_EQ(measuring_->next(), std::nullopt);
  life(1).end_by = clock_.now();
  EXPECT_EQ(measuring_->next(), std::nullopt) << "it is killed, and will have ended";
  life(1).is_probing = false;
  end(1);
  EXPECT_EQ(measuring_->next(), Group(0));
  EXPECT_EQ(measuring_->on_asked(0), "precisions are measured here, as the worker on cpu:1 ended");
  EXPECT_EQ(measuring_->on_asked(0), "");
}

// A call into its driver holds it. In a job it is given up then.
TEST_F(MeasuringGroupsTest, OneThatWasKilledAndDoesNotEndKeepsNoOtherFromMeasuring) {
  for (const bool gives_up : {false, true}) {
    make({kCpu, kCpu});
    ask(0);
    life(0).is_probing = true;
    life(0).end_by = clock_.now();
    life(0).is_stuck = true;
    life(0).is_given_up = gives_up;
    EXPECT_EQ(measuring_->next(), Group(1));
    EXPECT_EQ(measuring_->on_asked(1),
              "precisions are measured here, as the worker on cpu:0 does not end");
  }
}

TEST_F(MeasuringGroupsTest, OneThatDoesNotServeByItselfIsNotWaitedFor) {
  make({kCpu, kCpu, kCpu, kCpu});
  life(0).is_idle = true;
  life(1).is_stuck = true;
  life(2).fault = "the driver reported XID 48 (1 times)";
  life(3).goal = GroupGoal::Drain;
  EXPECT_FALSE(measuring_->is_one_left());
}

}  // namespace
}  // namespace muster
