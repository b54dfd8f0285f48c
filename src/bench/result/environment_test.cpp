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
