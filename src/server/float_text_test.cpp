#include "server/float_text.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace muster {
namespace {

std::string floats(const std::vector<float>& values) {
  std::string out = "x";
  append_floats(values, out);
  return out;
}

std::string base64(const std::vector<float>& values) {
  std::string out = "x";
  append_base64(values, out);
  return out;
}

TEST(FloatText, IsTheShortestThatReadsBack) {
  EXPECT_EQ(floats({}), "x");
  EXPECT_EQ(floats({0.1F, -0.25F, 0, -0.0F, 1e-20F}), "x0.1,-0.25,0,-0,1e-20");
}

TEST(FloatText, HoldsTheLongestNumbersThereAre) {
  EXPECT_EQ(floats({-std::numeric_limits<float>::min(), std::numeric_limits<float>::lowest()}),
            "x-1.1754944e-38,-3.4028235e+38");
}

TEST(FloatText, RandomBitsReadBackAsThemselves) {
  const unsigned seed = 20261;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    const auto bits = static_cast<std::uint32_t>(random());
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!are_finite({&value, 1})) continue;
    const std::string text = floats({value}).substr(1);
    float back = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), back).ptr;
    EXPECT_EQ(end, text.data() + text.size());
    EXPECT_EQ(std::memcmp(&back, &value, sizeof value), 0) << text;
  }
}

// Bytes of 1.0F are 00 00 80 3F; the base64 is that of coreutils' base64.
TEST(FloatText, Base64HasThreeEndings) {
  EXPECT_EQ(base64({}), "x");
  EXPECT_EQ(base64({1}), "xAACAPw==");
  EXPECT_EQ(base64({1, 1}), "xAACAPwAAgD8=");
  EXPECT_EQ(base64({1, 1, 1}), "xAACAPwAAgD8AAIA/");
}

TEST(FloatText, FindsWhatIsNotFinite) {
  EXPECT_TRUE(are_finite(std::vector<float>{1, -2}));
  EXPECT_FALSE(are_finite(std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_FALSE(are_finite(std::vector<float>{-std::numeric_limits<float>::infinity()}));
  EXPECT_TRUE(are_finite({}));
  // In whole turns of the loop, and behind them.
  for (const auto wrong :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (std::size_t at = 0; at < 70; ++at) {
      std::vector<float> values(70, -std::numeric_limits<float>::max());
      EXPECT_TRUE(are_finite(values));
      values[at] = wrong;
      EXPECT_FALSE(are_finite(values)) << at;
    }
  }
}

}  // namespace
}  // namespace muster
