#include "base/cpu_time.h"

#include <gtest/gtest.h>

#include <thread>

namespace muster {
namespace {

TEST(CpuTime, UserAndKernelAreAdded) {
  rusage usage{};
  usage.ru_utime = {.tv_sec = 2, .tv_usec = 250'000};
  usage.ru_stime = {.tv_sec = 1, .tv_usec = 500'000};
  EXPECT_EQ(cpu_seconds(usage.ru_utime), 2.25);
  EXPECT_EQ(cpu_seconds(usage), 3.75);
}

// It ends, since what a thread computes is counted.
TEST(CpuTime, OfThisProcessGrowsByWhatItsThreadsCompute) {
  const auto begin = process_cpu_seconds();
  EXPECT_GE(begin, 0);
  std::jthread([begin] {
    while (process_cpu_seconds() == begin) continue;
  }).join();
  EXPECT_GT(process_cpu_seconds(), begin);
}

TEST(CpuTime, OfAThreadIsItsOwn) {
  const auto begin = thread_cpu_seconds();
  std::jthread([process = process_cpu_seconds()] {
    const auto mine = thread_cpu_seconds();
    while (process_cpu_seconds() < process + 0.05) continue;
    EXPECT_GT(thread_cpu_seconds(), mine);
  }).join();
  EXPECT_LT(thread_cpu_seconds() - begin, 0.05) << "this one has waited";
}

}  // namespace
}  // namespace muster
