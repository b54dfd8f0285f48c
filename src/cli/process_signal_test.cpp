#include "cli/process_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace muster {
namespace {

// A process that calls itself "victim" and waits for a signal.
class ProcessSignal : public ::testing::Test {
 protected:
  ProcessSignal() {
    std::array<int, 2> named{};
    EXPECT_EQ(pipe(named.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_NAME, "victim");
      [[maybe_unused]] const auto written = write(named[1], "n", 1);
      for (;;) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(named[0], &byte, 1), 1);  // it has its name
    close(named[0]);
    close(named[1]);
  }
  ~ProcessSignal() override {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }

  pid_t pid_ = -1;
};

TEST_F(ProcessSignal, ReachesTheProcessOfThatName) {
  ASSERT_TRUE(send_signal(pid(), "victim", SIGTERM));
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST_F(ProcessSignal, DoesNotHitAnotherThatHasTheNumberNow) {
  const auto sent = send_signal(pid(), "python3", SIGKILL);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind, ErrorKind::NotFound);
  EXPECT_EQ(waitpid(pid_, nullptr, WNOHANG), 0);  // it lives
}

}  // namespace
}  // namespace muster
