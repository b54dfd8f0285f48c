#include "cli/interval.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;

TEST(Interval, IsANumberAndAUnit) {
  const auto parsed = [](const char* text) { return *parse_interval("--interval", text); };
  EXPECT_EQ(parsed("100ms"), milliseconds(100));
  EXPECT_EQ(parsed("0.5s"), milliseconds(500));
  EXPECT_EQ(parsed("1s"), milliseconds(1'000));
  EXPECT_EQ(parsed("2m"), milliseconds(120'000));
}

TEST(Interval, IsRefusedInOneSentence) {
  for (const auto* text : {"", "1", "s", "1 s", "1h", "-1s", "9ms", "61m", "nans", "infs", "1sx"}) {
    const auto parsed = parse_interval("--interval", text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::InvalidArgument);
  }
  EXPECT_EQ(parse_interval("--interval", "1h").error().message,
            "--interval must be a time from 10ms to 60m, as 100ms, 0.5s or 2m: \"1h\"");
}

}  // namespace
}  // namespace muster
