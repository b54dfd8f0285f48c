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

// Source: RFC 9110, section 5.6.4: what separates stands in a quoted string for itself.
TEST(ServerStages, ReadsWhatIsQuoted) {
  EXPECT_EQ(server_stages({{"Server-Timing", R"(db;desc="read, write; all";dur=3, q;dur="1.5")"}}),
            (Stages{{"db", 0.003}, {"q", 0.0015}}));
  EXPECT_EQ(server_stages({{"Server-Timing", R"(a;desc="a \" b, c";dur=2)"}}),
            (Stages{{"a", 0.002}}));
  EXPECT_EQ(server_stages({{"Server-Timing", R"(a ; dur = 2, b;desc="no end, c;dur=1)"}}),
            (Stages{{"a", 0.002}}));
}

// Proxies add a line of their own. Source: RFC 9110, section 5.3.
TEST(ServerStages, ReadsEveryLineOfTheHeader) {
  EXPECT_EQ(server_stages({{"Server-Timing", "edge;dur=1.5"},
                           {"x-queue-time", "9"},
                           {"server-timing", "queue;dur=20"}}),
            (Stages{{"edge", 0.0015}, {"queue", 0.02}}));
}

TEST(ServerStages, LeavesOutWhatIsNoTime) {
  EXPECT_EQ(server_stages({{"Server-Timing", "a;dur=1e300, b;dur=inf, c;dur=20"}}),
            (Stages{{"c", 0.02}}));
  EXPECT_EQ(server_stages({{"x-queue-time", "1e300"}}), Stages{});
}

TEST(ServerStages, ReadsThoseOfTei) {
  EXPECT_EQ(
      server_stages({{"x-total-time", "9"}, {"x-queue-time", "2"}, {"x-inference-time", "6"}}),
      (Stages{{"queue", 0.002}, {"inference", 0.006}}));
}

}  // namespace
}  // namespace muster
