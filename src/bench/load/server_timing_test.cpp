#include "bench/load/server_timing.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Stages = std::vector<std::pair<std::string, double>>;

TEST(ServerStages, ReadsTheHeaderOfTheW3c) {
  EXPECT_EQ(server_stages(
                {{"server-timing", "queue;dur=1.5, cache;desc=\"hit\", compute;desc=x;dur=20"}}),
            (Stages{{"queue", 0.0015}, {"compute", 0.02}}));
  EXPECT_EQ(server_stages({{"Server-Timing", "a;dur=-1, b;dur=x, ;dur=3, c;dur=nan"}}), Stages{});
  EXPECT_EQ(server_stages({{"Date", "today"}}), Stages{});
}

TEST(ServerStages, ReadsThoseOfTei) {
  EXPECT_EQ(
      server_stages({{"x-total-time", "9"}, {"x-queue-time", "2"}, {"x-inference-time", "6"}}),
      (Stages{{"queue", 0.002}, {"inference", 0.006}}));
}

}  // namespace
}  // namespace muster
