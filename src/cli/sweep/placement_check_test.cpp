#include "cli/sweep/placement_check.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Held = std::map<std::string, std::uint64_t>;

TEST(HeldMemory, IsTheMostThatAWorkerCounted) {
  EXPECT_EQ(held_memory(R"({"devices":[
    {"name":"cuda:0","activation_peak_bytes":30,
     "models":[{"weights_bytes":100,"load_peak_bytes":120},{"weights_bytes":5,"load_peak_bytes":9}]},
    {"name":"cuda:1","activation_peak_bytes":0,
     "models":[{"weights_bytes":100,"load_peak_bytes":190}]},
    {"name":"cpu:0","activation_peak_bytes":0,"models":[]}]})"),
            (Held{{"cuda:0", 135}, {"cuda:1", 190}}));
}

TEST(HeldMemory, IsNothingOfWhatIsNoAnswer) {
  for (const auto* text : {"", "[]", "{}", R"({"devices":3})", R"({"devices":[3,{"name":4}]})",
                           R"({"devices":[{"name":"a","models":[3]}]})"}) {
    EXPECT_TRUE(held_memory(text).empty()) << text;
  }
}

TEST(MemoryFaults, NameTheDevicesThatHeldTooMuch) {
  const MemoryLimits limits{{"cuda:0", 100}, {"cuda:1", 100}, {"cuda:2", 100}};
  EXPECT_EQ(memory_faults(limits, {{"cuda:0", 100}, {"cuda:1", 2'000'000'000}}),
            std::vector<std::string>{"cuda:1 held 2.00 GB, and max_memory allows 100 B"});
  EXPECT_TRUE(memory_faults({}, {{"cuda:0", 100}}).empty());
}

}  // namespace
}  // namespace muster
