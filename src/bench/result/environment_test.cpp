#include "bench/result/environment.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ParseMachineTicks, ReadsTheLineOfAllCpus) {
  // Source of the order: proc(5), /proc/stat: user nice system idle iowait irq softirq steal.
  const auto ticks =
      parse_machine_ticks("cpu  10 2 3 100 20 4 5 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->busy, 24U);
  EXPECT_EQ(ticks->idle, 120U);
  EXPECT_EQ(ticks->stolen, 7U);
  EXPECT_FALSE(parse_machine_ticks(""));
  EXPECT_FALSE(parse_machine_ticks("cpu 1 2 3\n"));
}

TEST(MachineUse, IsOfWhatWasCountedMeanwhile) {
  const MachineTicks begin{.busy = 100, .idle = 1'000, .stolen = 50};
  const auto use = machine_use(begin, {.busy = 160, .idle = 1'030, .stolen = 60}, 20);
  EXPECT_DOUBLE_EQ(*use.busy_share, 0.6);
  EXPECT_DOUBLE_EQ(*use.stolen_share, 0.1);
  EXPECT_DOUBLE_EQ(*use.others_share, 0.4);
  // A hypervisor that begins to count anew has stolen nothing, and not 2^64 ticks.
  const auto moved = machine_use(begin, {.busy = 160, .idle = 1'040, .stolen = 0}, 60);
  EXPECT_DOUBLE_EQ(*moved.stolen_share, 0);
  EXPECT_DOUBLE_EQ(*moved.busy_share, 0.6);
  EXPECT_DOUBLE_EQ(*moved.others_share, 0);
}

TEST(FindEnvironment, KnowsThisMachine) {
  const auto environment = find_environment();
  EXPECT_FALSE(environment.cpu_model.empty());
  EXPECT_GE(environment.logical_cpus, 1U);
  EXPECT_GT(environment.memory_bytes, 0U);
  EXPECT_FALSE(environment.kernel.empty());
  EXPECT_FALSE(environment.build.empty());
}

TEST(MachineWatch, SharesAddUpToAtMostOne) {
  const MachineWatch watch;
  const auto use = watch.use(0);
  ASSERT_TRUE(use.busy_share && use.stolen_share && use.others_share);
  EXPECT_GE(*use.busy_share, 0);
  EXPECT_LE(*use.busy_share + *use.stolen_share, 1);
  EXPECT_TRUE(use.load_average[0]);
}

}  // namespace
}  // namespace muster
