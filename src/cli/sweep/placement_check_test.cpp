#include "cli/sweep/placement_check.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(MemoryFaults, NameTheDevicesThatHeldTooMuch) {
  const MemoryLimits limits{{"cuda:0", 100}, {"cuda:1", 100}, {"cuda:2", 100}};
  EXPECT_EQ(memory_faults(limits, {{"cuda:0", 100}, {"cuda:1", 2'000'000'000}}),
            std::vector<std::string>{"cuda:1 held 2.00 GB, and max_memory allows 100 B"});
  EXPECT_TRUE(memory_faults({}, {{"cuda:0", 100}}).empty());
}

}  // namespace
}  // namespace muster
