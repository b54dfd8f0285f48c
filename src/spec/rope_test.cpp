#include "spec/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace muster {
namespace {

/// Within one unit in the last place.
void expect_frequencies(const RopeSpec& rope, std::uint64_t length,
                        const std::vector<float>& expected) {
  const auto values = rope_frequencies(rope, length).inverse_frequencies;
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_LE(std::abs(values[i] - expected[i]), std::nextafter(expected[i], 2.0F) - expected[i])
        << "frequency " << i << ": " << values[i] << ", expected " << expected[i];
  }
}

RopeSpec of_size(std::uint32_t size, RopeScaling scaling) {
  RopeSpec rope;
  rope.style = RopeStyle::Halves;
  rope.size = size;
  rope.scaling = scaling;
  rope.original_length = 64;
  return rope;
}

TEST(Rope, PlainFrequenciesArePowersOfTheBase) {
  // 10000^(-2 i / 8) = 10^-i.
  expect_frequencies(of_size(8, RopeScaling::None), 1000, {1.0F, 0.1F, 0.01F, 0.001F});
}

// The expected numbers below were printed by transformers 5.17's ROPE_INIT_FUNCTIONS with
// torch 2.11.

TEST(Rope, LinearScalingDividesEveryFrequency) {
  auto rope = of_size(8, RopeScaling::Linear);
  rope.factor = 4;
  expect_frequencies(rope, 1, {0.25F, 0x1.99999ap-6F, 0x1.47ae14p-9F, 0x1.0624dep-12F});
}

TEST(Rope, DynamicScalingBeginsBeyondTheTrainedLength) {
  auto rope = of_size(8, RopeScaling::Dynamic);
  rope.factor = 2;
  for (const std::uint64_t length : {1U, 64U}) {
    expect_frequencies(rope, length, {1.0F, 0.1F, 0.01F, 0.001F});
  }
  expect_frequencies(rope, 100, {1.0F, 0x1.3e9892p-4F, 0x1.8c7f66p-8F, 0x1.ed7292p-12F});
}

TEST(Rope, YarnKeepsFastTurnsStretchesSlowOnesAndMixesBetween) {
  auto rope = of_size(16, RopeScaling::Yarn);
  rope.factor = 4;
  expect_frequencies(rope, 1,
                     {0x1.0p+0F, 0x1.e5b9dp-3F, 0x1.999998p-5F, 0x1.030dc6p-7F, 0x1.47ae14p-9F,
                      0x1.9e7c7p-11F, 0x1.0624dep-12F, 0x1.4b96cp-14F});
  rope.is_truncated = false;
  rope.beta_fast = 4;
  expect_frequencies(rope, 1,
                     {0x1.0p+0F, 0x1.1ddfeep-2F, 0x1.a9eda2p-6F, 0x1.030dc6p-7F, 0x1.47ae14p-9F,
                      0x1.9e7c7p-11F, 0x1.0624dep-12F, 0x1.4b96cp-14F});
}

TEST(Rope, Llama3LeavesShortWavesAlone) {
  auto rope = of_size(8, RopeScaling::Llama3);
  rope.factor = 8;
  rope.low_frequency_factor = 1;
  rope.high_frequency_factor = 4;
  expect_frequencies(rope, 1, {1.0F, 0x1.ab5e60p-7F, 0x1.47ae14p-10F, 0x1.0624dep-13F});
}

TEST(Rope, LongRopeChangesItsListOnePastTheTrainedLength) {
  auto rope = of_size(8, RopeScaling::LongRope);
  rope.original_length = 16;
  rope.short_divisors = {1.0F, 1.1F, 1.5F, 2.0F};
  rope.long_divisors = {1.5F, 2.0F, 4.0F, 8.0F};
  rope.attention_factor = 1.25;
  expect_frequencies(rope, 16, {1.0F, 0x1.745d18p-4F, 0x1.b4e81cp-8F, 0x1.0624dep-11F});
  expect_frequencies(rope, 17, {0x1.555556p-1F, 0x1.99999ap-5F, 0x1.47ae14p-9F, 0x1.0624dep-13F});
  EXPECT_EQ(rope_frequencies(rope, 16).attention_factor, 1.25F);
}

}  // namespace
}  // namespace muster
