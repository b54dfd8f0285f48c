#include "bench/load/length_law.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster {
namespace {

TEST(LengthLaw, FixedLengthsAreAllAlike) {
  const auto law = parse_length_law("--x", "128");
  ASSERT_TRUE(law);
  RandomStream random(1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(law->draw(random), 128U);
  EXPECT_EQ(law->text(), "128");
}

TEST(LengthLaw, LogNormalHasItsMedianAndSpread) {
  const auto law = parse_length_law("--x", "lognormal:100:0.5");
  ASSERT_TRUE(law);
  EXPECT_EQ(law->text(), "lognormal:100:0.5");
  RandomStream random(1);
  std::vector<std::uint64_t> lengths;
  for (int i = 0; i < 10'001; ++i) lengths.push_back(law->draw(random));
  std::ranges::sort(lengths);
  EXPECT_NEAR(static_cast<double>(lengths[5000]), 100, 3);
  // One standard deviation up: 100 e^0.5 at the 84.13th percentile.
  EXPECT_NEAR(static_cast<double>(lengths[8413]), 164.9, 8);
}

TEST(LengthLaw, AreNeverNothing) {
  const auto law = parse_length_law("--x", "lognormal:1:2");
  RandomStream random(1);
  for (int i = 0; i < 1000; ++i) EXPECT_GE(law->draw(random), 1U);
}

TEST(LengthLaw, RefusesOtherForms) {
  for (const char* bad : {"", "0", "-5", "many", "normal:10:1", "lognormal:10", "lognormal:10:9",
                          "lognormal:0:1", "10:2", "2000000", "nan"}) {
    const auto law = parse_length_law("--prompt-words", bad);
    ASSERT_FALSE(law) << bad;
    EXPECT_EQ(law.error().kind, ErrorKind::InvalidArgument);
    EXPECT_TRUE(law.error().message.starts_with("--prompt-words must be a length")) << bad;
  }
}

}  // namespace
}  // namespace muster
