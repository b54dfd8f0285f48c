// Real processes (stand_ins/zero_worker): a group of two, which starts, speaks and ends as one.

#include "coordinator/group_runner.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "coordinator/step_signal.h"

namespace muster {
namespace {

constexpr Duration kPatience = std::chrono::seconds(20);

class GroupRunnerTest : public testing::Test, protected GroupProcessEvents {
 protected:
  GroupRunnerTest() { ::setenv("ZERO_WORKER", "echo", 1); }
  ~GroupRunnerTest() override { ::unsetenv("ZERO_WORKER"); }

  void start(std::size_t member_count) {
    std::vector<Device> devices(member_count);
    for (std::uint32_t i = 0; i < member_count; ++i) devices[i].index = i;
    auto pids = runner_.start(0, devices);
    ASSERT_TRUE(pids) << pids.error().message;
    pids_ = *std::move(pids);
    run_until([&] { return greeted_.size() == member_count; });
  }

  void run_until(const std::function<bool()>& is_so) {
    const auto end = clock_.now() + kPatience;
    while (!is_so()) {
      ASSERT_LT(clock_.now(), end);
      ASSERT_TRUE(runner_.wait(std::chrono::milliseconds(100)));
      ASSERT_TRUE(runner_.handle(*this));
      take_death();
    }
  }

  // As the supervisor does: one that another process traces (the leak checker's own, at an exit) is
  // not handed over at once, and is asked for again.
  void take_death() {
    if (has_exited_ && !death_) death_ = runner_.reap(0, Duration{0});
  }

  // GroupProcessEvents
  Status on_frame(std::size_t, std::size_t member, const FrameHeader& header,
                  std::span<const std::byte>) override {
    if (header.type == static_cast<std::uint8_t>(MessageType::Hello)) greeted_.insert(member);
    if (header.type == static_cast<std::uint8_t>(MessageType::Ready)) loaded_.insert(member);
    if (header.type == static_cast<std::uint8_t>(MessageType::Rows)) answered_.insert(header.id);
    return Done{};
  }
  Status on_broken(std::size_t, const Error& error) override { return error; }
  void on_stream_end(std::size_t, const std::optional<WorkerDeath>& death) override {
    is_stream_ended_ = true;
    dying_ = death;
  }
  void on_exit(std::size_t) override { has_exited_ = true; }
  void on_line(std::size_t, const std::string& line) override { lines_ += line + "\n"; }

  const SteadyClock clock_{};
  StepSignal signal_;
  std::vector<pid_t> pids_;
  std::set<std::size_t> greeted_;
  std::set<std::size_t> loaded_;
  std::set<std::uint64_t> answered_;  // frames
  bool is_stream_ended_ = false;
  std::optional<WorkerDeath> dying_;
  bool has_exited_ = false;
  std::optional<WorkerDeath> death_;
  std::string lines_;
  GroupRunner runner_{{.program = std::string(MUSTER_BINARY_DIR) + "/bin/zero_worker",
                       .torch_root = {},
                       .group_count = 1},
                      signal_.fd(),
                      clock_};
};

TEST_F(GroupRunnerTest, EveryMemberGreetsAndTheLeaderGetsTheFrames) {
  ASSERT_NO_FATAL_FAILURE(start(2));
  EXPECT_EQ(pids_.size(), 2U);
  Load load;
  load.model_id = 1;
  runner_.send(0, MessageType::Load, 0, encode(load));
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return !loaded_.empty(); }));
  EXPECT_EQ(loaded_, std::set<std::size_t>{0});
}

// 16 MB of rows: many times what a socket holds.
TEST_F(GroupRunnerTest, OfAPartOfAFrameNobodyIsTold) {
  ::setenv("ZERO_WORKER", "echo dim=1000000", 1);
  ASSERT_NO_FATAL_FAILURE(start(1));
  Load load;
  load.model_id = 1;
  runner_.send(0, MessageType::Load, 0, encode(load));
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return !loaded_.empty(); }));
  EXPECT_FALSE(runner_.had_only_parts()) << "a whole one";
  Batch batch;
  batch.model_id = 1;
  batch.lengths = {1, 1, 1, 1};
  batch.ids = {5, 6, 7, 8};
  runner_.send(0, MessageType::Batch, 9, encode(batch));
  // It is stopped before it has sent all: what is there is a part, and nothing follows.
  pollfd begun{runner_.wait_fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&begun, 1, 20'000), 1);
  ASSERT_EQ(::kill(pids_[0], SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(pids_[0], &status, WUNTRACED), pids_[0]);
  ASSERT_TRUE(runner_.wait(kPatience));
  ASSERT_TRUE(runner_.handle(*this));
  EXPECT_TRUE(runner_.had_only_parts());
  EXPECT_TRUE(answered_.empty());
  ASSERT_EQ(::kill(pids_[0], SIGCONT), 0);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return !answered_.empty(); }));
  EXPECT_FALSE(runner_.had_only_parts()) << "the last part makes it whole";
  EXPECT_EQ(answered_, std::set<std::uint64_t>{9});
}

TEST_F(GroupRunnerTest, TheDeathOfOneMemberKillsTheOthersAndIsHowTheGroupEnded) {
  ASSERT_NO_FATAL_FAILURE(start(2));
  ::kill(pids_[1], SIGABRT);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return death_.has_value(); }));
  EXPECT_EQ(death_->reason, "signal 6 (Aborted)") << "not the kill that followed";
  EXPECT_TRUE(death_->is_own_fault);
  EXPECT_TRUE(is_stream_ended_);
  ASSERT_TRUE(dying_) << "the kernel tells before it is gone (Linux 5.17)";
  EXPECT_EQ(dying_->reason, death_->reason);
  EXPECT_TRUE(dying_->is_own_fault);
  for (const auto pid : pids_) EXPECT_NE(::kill(pid, 0), 0) << "it was waited for";
  runner_.leave(0);

  greeted_.clear();
  has_exited_ = false;
  death_.reset();
  ASSERT_NO_FATAL_FAILURE(start(2));
  EXPECT_FALSE(death_) << "an end of the last life is not the new one's";
}

TEST_F(GroupRunnerTest, TheEndOfTheStreamEndsEveryMember) {
  ASSERT_NO_FATAL_FAILURE(start(2));
  runner_.end(0, GroupEnding::EndOfStream);
  ASSERT_NO_FATAL_FAILURE(run_until([this] { return death_.has_value(); }));
  EXPECT_EQ(death_->reason, "exit code 0");
  EXPECT_GT(death_->cpu_seconds, 0.0);
}

// As of one that dies while the kernel frees its memory: its socket is still open.
TEST_F(GroupRunnerTest, TheEndOfTheLivenessPipeEndsTheStream) {
  const auto program = std::filesystem::path(testing::TempDir()) / "worker_without_liveness";
  std::ofstream(program) << "#!/bin/sh\nexec 4>&-\nexec sleep 600\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  GroupRunner runner({.program = program, .torch_root = {}, .group_count = 1}, signal_.fd(),
                     clock_);
  ASSERT_TRUE(runner.start(0, {Device{}}));
  const auto end = clock_.now() + kPatience;
  while (!is_stream_ended_ && clock_.now() < end) {
    ASSERT_TRUE(runner.wait(std::chrono::milliseconds(100)));
    ASSERT_TRUE(runner.handle(*this));
  }
  EXPECT_TRUE(is_stream_ended_);
  EXPECT_FALSE(dying_) << "it lives";
  EXPECT_FALSE(has_exited_);
}

TEST_F(GroupRunnerTest, WhereOneMemberCannotBeStartedNoneIsLeft) {
  GroupRunner none({.program = "/no/such/muster-worker", .torch_root = {}, .group_count = 1},
                   signal_.fd(), clock_);
  const auto started = none.start(0, {Device{}, Device{}});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, ErrorKind::NotFound);
}

TEST_F(GroupRunnerTest, AWakeUpEndsAWait) {
  signal_.wake();
  ASSERT_TRUE(runner_.wait(kPatience));
  ASSERT_TRUE(runner_.handle(*this));
}

}  // namespace
}  // namespace muster
