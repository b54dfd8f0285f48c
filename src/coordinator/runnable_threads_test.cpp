#include "coordinator/runnable_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace muster {
namespace {

/// A process that does what it is given, and ends with the test.
class Child {
 public:
  explicit Child(void (*run)()) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    run();
    ::_exit(0);
  }
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

  /// Whether it comes to that soon.
  bool comes_to(bool is_runnable) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (has_runnable_thread(pid_) != is_runnable) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  pid_t pid_;
};

[[noreturn]] void spin() {
  for (volatile unsigned turns = 0;; turns = turns + 1) {
  }
}

void sleep_for_ever() {
  for (;;) ::pause();
}

TEST(RunnableThreads, OneThatComputesIsRunnableUntilItIsStopped) {
  const Child child(spin);
  ASSERT_GT(child.pid(), 0);
  EXPECT_TRUE(child.comes_to(true));
  ::kill(child.pid(), SIGSTOP);
  EXPECT_TRUE(child.comes_to(false));
}

TEST(RunnableThreads, OneThatSleepsIsNot) {
  const Child child([] {
    ::prctl(PR_SET_NAME, "a) R (b");
    sleep_for_ever();
  });
  ASSERT_GT(child.pid(), 0);
  EXPECT_TRUE(child.comes_to(false));
}

// The name of each ends as a state would begin.
TEST(RunnableThreads, AnyThreadCounts) {
  const Child child([] {
    ::prctl(PR_SET_NAME, "a) S (b");
    pthread_t other{};
    ::pthread_create(
        &other, nullptr, [](void*) -> void* { spin(); }, nullptr);
    sleep_for_ever();
  });
  ASSERT_GT(child.pid(), 0);
  EXPECT_TRUE(child.comes_to(true));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(has_runnable_thread(child.pid()));
}

TEST(RunnableThreads, AProcessThatIsGoneHasNone) {
  pid_t pid = 0;
  {
    const Child child(spin);
    pid = child.pid();
  }
  EXPECT_FALSE(has_runnable_thread(pid));
}

}  // namespace
}  // namespace muster
