#include "engine/sampling/token_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace muster::engine {
namespace {

TEST(TokenWeightsTest, AreExponentialsWithATemperature) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> logits(5000);
  for (auto& logit : logits) logit = normal(random);
  const float largest = *std::max_element(logits.begin(), logits.end());
  for (const double temperature : {0.1, 0.7, 1.0, 3.0}) {
    auto weights = logits;
    const TokenWeights all(weights, largest, temperature);
    double total = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double weight = std::exp((double{logits[i]} - largest) / temperature);
      total += weight;
      // A float32 near -87 / temperature is a number of steps of 2^-17 away.
      ASSERT_NEAR(all.all()[i], weight, 2e-5 * weight + 2e-38) << temperature;
    }
    EXPECT_NEAR(all.total(), total, 1e-6 * total) << temperature;
    EXPECT_EQ(*std::max_element(weights.begin(), weights.end()), 1);
  }
  const double sum = sum_of_weights(logits, largest);
  EXPECT_EQ(sum, TokenWeights(logits, largest, 1).total());
}

// However small the temperature is.
TEST(TokenWeightsTest, AtATemperatureOfNearlyNothingOneIsLeft) {
  for (const double temperature : {1e-3, 1e-300}) {
    std::vector<float> logits{1, 3, 2};
    const TokenWeights weights(logits, 3, temperature);
    EXPECT_EQ(logits, (std::vector<float>{0, 1, 0}));
    EXPECT_EQ(weights.token_at(0.99), 1U);
  }
}

// 3,000 tokens of weight 1 but for a few of 0, in three chunks: token i has [i, i + 1).
TEST(TokenWeightsTest, ATokenIsFoundByItsPlaceInTheSum) {
  std::vector<float> logits(3000, 0.0F);
  for (const std::size_t none : {0U, 1U, 1023U, 1024U, 2999U}) logits[none] = -1000;
  const TokenWeights weights(logits, 0, 1);
  EXPECT_EQ(weights.total(), 2995);
  EXPECT_EQ(weights.token_at(0), 2U);
  EXPECT_EQ(weights.token_at(0.999), 2U);
  EXPECT_EQ(weights.token_at(1), 3U);
  EXPECT_EQ(weights.token_at(1020.5), 1022U);
  EXPECT_EQ(weights.token_at(1021), 1025U);
  EXPECT_EQ(weights.token_at(2994.5), 2998U);
  EXPECT_EQ(weights.token_at(2995), 2998U) << "as rounding may have it";
}

// The sum of a chunk in float32 is above that in float64 here: 15 weights of 7e-8 are added to 1 in
// one lane, each as 1.2e-7. Where that is not accounted for, the last token gets what is too much,
// whose weight is 4e-38.
TEST(TokenWeightsTest, ATokenOfHardlyAWeightIsNotDrawnForRounding) {
  std::vector<float> logits(1024, -86.0F);
  logits[0] = 0;
  for (std::size_t k = 1; k < 16; ++k) logits[64 * k] = -16.475F;
  const TokenWeights weights(logits, 0, 1);
  EXPECT_LE(weights.token_at(weights.total() * (1 - 1e-9)), 960U);
  for (int i = 1; i < 1000; ++i) {
    EXPECT_LE(weights.token_at(weights.total() * (1 - 1e-8 * i)), 960U) << i;
  }
}

}  // namespace
}  // namespace muster::engine
