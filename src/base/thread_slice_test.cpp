#include "base/thread_slice.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <thread>

namespace muster {
namespace {

// The slice as the kernel tells it; 0 before Linux 6.12. Its place is the fourth of eight bytes.
std::uint64_t slice_ns() {
  std::array<std::uint64_t, 6> attributes{};
  ::syscall(SYS_sched_getattr, 0, attributes.data(), sizeof attributes, 0);
  return attributes[3];
}

void on_a_thread(const std::function<void()>& test) { std::jthread thread(test); }

TEST(ThreadSlice, IsShortForTheThreadThatAsks) {
  on_a_thread([] {
    if (sched_getscheduler(0) != SCHED_OTHER || getpriority(PRIO_PROCESS, 0) < 0) {
      GTEST_SKIP() << "run with a policy or a nice value of its own";
    }
    const auto before = slice_ns();
    ASSERT_TRUE(ask_for_short_slices());
    EXPECT_EQ(slice_ns(), before > 0 ? 100'000U : 0U);
  });
}

TEST(ThreadSlice, IsTheUsualOneForWhatTheThreadStarts) {
  on_a_thread([] {
    const auto usual = slice_ns();
    const auto policy = sched_getscheduler(0);
    ask_for_short_slices();
    on_a_thread([usual, policy] {
      EXPECT_EQ(slice_ns(), usual);
      EXPECT_EQ(sched_getscheduler(0), policy);
    });
  });
}

TEST(ThreadSlice, LeavesAThreadOfAnotherPolicyAlone) {
  on_a_thread([] {
    const sched_param none{};
    ASSERT_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    EXPECT_FALSE(ask_for_short_slices());
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
  });
}

TEST(ThreadSlice, KeepsTheNiceValue) {
  on_a_thread([] {
    if (sched_getscheduler(0) != SCHED_OTHER) GTEST_SKIP() << "run with a policy of its own";
    const auto thread = static_cast<id_t>(::gettid());
    // One more than it has: that much is allowed to everybody.
    const int nice = std::clamp(getpriority(PRIO_PROCESS, thread) + 1, 1, 19);
    ASSERT_EQ(setpriority(PRIO_PROCESS, thread, nice), 0);
    EXPECT_TRUE(ask_for_short_slices());
    EXPECT_EQ(getpriority(PRIO_PROCESS, thread), nice);
  });
}

}  // namespace
}  // namespace muster
