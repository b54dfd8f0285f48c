#include "bench/load/server_timing.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Stages = std::vector<std::pair<std::string, double>>;

Stages stages_of(const HttpHeaders& headers) { return server_stages(headers).stages; }

std::uint64_t left_out_of(const HttpHeaders& headers) { return server_stages(headers).left_out; }

TEST(ServerStages, ReadsTheHeaderOfTheW3c) {
  EXPECT_EQ(
      stages_of({{"server-timing", "queue;dur=1.5, cache;desc=\"hit\", compute;desc=x;dur=20"}}),
      (Stages{{"queue", 0.0015}, {"compute", 0.02}}));
  EXPECT_EQ(stages_of({{"Server-Timing", "a;dur=-1, b;dur=x, ;dur=3, c;dur=nan"}}), Stages{});
  EXPECT_EQ(stages_of({{"Date", "today"}}), Stages{});
}

// Source: RFC 9110, section 5.6.4: what separates stands in a quoted string for itself.
TEST(ServerStages, ReadsWhatIsQuoted) {
  EXPECT_EQ(stages_of({{"Server-Timing", R"(db;desc="read, write; all";dur=3, q;dur="1.5")"}}),
            (Stages{{"db", 0.003}, {"q", 0.0015}}));
  EXPECT_EQ(stages_of({{"Server-Timing", R"(a;desc="a \" b, c";dur=2)"}}), (Stages{{"a", 0.002}}));
  EXPECT_EQ(stages_of({{"Server-Timing", R"(a ; dur = 2, b;desc="no end, c;dur=1)"}}),
            (Stages{{"a", 0.002}}));
}

// Proxies add a line of their own. Source: RFC 9110, section 5.3.
TEST(ServerStages, ReadsEveryLineOfTheHeader) {
  EXPECT_EQ(stages_of({{"Server-Timing", "edge;dur=1.5"},
                       {"x-queue-time", "9"},
                       {"server-timing", "queue;dur=20"}}),
            (Stages{{"edge", 0.0015}, {"queue", 0.02}}));
}

TEST(ServerStages, LeavesOutWhatIsNoTime) {
  EXPECT_EQ(stages_of({{"Server-Timing", "a;dur=1e300, b;dur=inf, c;dur=20"}}),
            (Stages{{"c", 0.02}}));
  EXPECT_EQ(stages_of({{"x-queue-time", "1e300"}}), Stages{});
}

// Source: W3C, Server Timing, section 3: of a parameter that comes twice the first counts, whatever
// it is. Names of parameters are alike in either case.
TEST(ServerStages, OfSeveralDurationsTheFirstCounts) {
  EXPECT_EQ(stages_of({{"Server-Timing", "a;dur=1;dur=9, b;DUR=2"}}),
            (Stages{{"a", 0.001}, {"b", 0.002}}));
  EXPECT_EQ(stages_of({{"Server-Timing", "a;dur=x;dur=9, b;dur;dur=9"}}), Stages{});
}

// What a server says of itself and nobody can use is counted, so that it can be told.
TEST(ServerStages, CountsWhatItLeavesOut) {
  EXPECT_EQ(left_out_of({{"Server-Timing", "a;dur=-1, b;dur=x, ;dur=3, c;dur=nan, d;dur="}}), 5U);
  EXPECT_EQ(left_out_of({{"Server-Timing", "cache;desc=\"hit\", a;dur=1, b"}}), 0U);
  EXPECT_EQ(left_out_of({{"x-queue-time", "soon"}, {"x-inference-time", "6"}}), 1U);
  std::string many;
  for (int i = 0; i < 18; ++i) many += "s" + std::to_string(i) + ";dur=1,";
  EXPECT_EQ(stages_of({{"Server-Timing", many}}).size(), 16U);
  EXPECT_EQ(left_out_of({{"Server-Timing", many}}), 2U);
}

TEST(ServerStages, ReadsThoseOfTei) {
  EXPECT_EQ(stages_of({{"x-total-time", "9"}, {"x-queue-time", "2"}, {"x-inference-time", "6"}}),
            (Stages{{"queue", 0.002}, {"inference", 0.006}}));
}

}  // namespace
}  // namespace muster
