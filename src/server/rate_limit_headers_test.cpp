#include "server/rate_limit_headers.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(RateLimitHeaders, AreThoseOfTheLimitsThatThereAre) {
  HttpHeaders headers;
  add_rate_limits(
      {.requests = LimitUsage{.limit = 60, .remaining = 41.7, .reset = std::chrono::seconds(19)}},
      headers);
  const HttpHeaders expected{{"x-ratelimit-limit-requests", "60"},
                             {"x-ratelimit-remaining-requests", "41"},
                             {"x-ratelimit-reset-requests", "19s"}};
  EXPECT_EQ(headers, expected);
}

TEST(RateLimitHeaders, TimesAreWrittenAsGoDoesAndRoundedUp) {
  using std::chrono::milliseconds;
  EXPECT_EQ(reset_text({}), "0ms");
  EXPECT_EQ(reset_text(std::chrono::microseconds(1)), "1ms");
  EXPECT_EQ(reset_text(milliseconds(120)), "120ms");
  EXPECT_EQ(reset_text(milliseconds(1001)), "2s");
  EXPECT_EQ(reset_text(std::chrono::minutes(6)), "6m0s");
  EXPECT_EQ(reset_text(std::chrono::seconds(3661)), "1h1m1s");
}

}  // namespace
}  // namespace muster
