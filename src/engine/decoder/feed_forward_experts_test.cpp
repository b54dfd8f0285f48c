#include "engine/decoder/feed_forward_experts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace muster::engine {
namespace {

std::vector<ExpertChoice> chosen_of(const std::vector<float>& logits, std::size_t count) {
  std::vector<ExpertChoice> chosen(count);
  choose_experts(logits, chosen);
  return chosen;
}

// e^ln(3) / (e^ln(3) + e^0): the one left out does not count.
TEST(ChooseExpertsTest, WeightsAreASoftmaxOverTheChosen) {
  const auto chosen = chosen_of({0, std::log(3.0F), -1}, 2);
  EXPECT_EQ(chosen[0].expert, 1U);
  EXPECT_FLOAT_EQ(chosen[0].weight, 0.75F);
  EXPECT_EQ(chosen[1].expert, 0U);
  EXPECT_FLOAT_EQ(chosen[1].weight, 0.25F);
}

TEST(ChooseExpertsTest, AllOfThemMayBeChosen) {
  const auto chosen = chosen_of({std::log(2.0F), 0, std::log(5.0F)}, 3);
  EXPECT_EQ(chosen[0].expert, 2U);
  EXPECT_FLOAT_EQ(chosen[0].weight, 0.625F);
  EXPECT_EQ(chosen[1].expert, 0U);
  EXPECT_FLOAT_EQ(chosen[1].weight, 0.25F);
  EXPECT_EQ(chosen[2].expert, 1U);
  EXPECT_FLOAT_EQ(chosen[2].weight, 0.125F);
}

TEST(ChooseExpertsTest, OfEqualLogitsTheLowerIndexGoesFirst) {
  const auto chosen = chosen_of({1, 2, 2, 1}, 3);
  EXPECT_EQ(chosen[0].expert, 1U);
  EXPECT_EQ(chosen[1].expert, 2U);
  EXPECT_EQ(chosen[2].expert, 0U);
  EXPECT_EQ(chosen[0].weight, chosen[1].weight);
}

// Their difference is beyond float32.
TEST(ChooseExpertsTest, LogitsThatAreFarApartLeaveOneExpert) {
  const auto chosen = chosen_of({-3e38F, 3e38F}, 2);
  EXPECT_EQ(chosen[0].expert, 1U);
  EXPECT_EQ(chosen[0].weight, 1.0F);
  EXPECT_EQ(chosen[1].expert, 0U);
  EXPECT_EQ(chosen[1].weight, 0.0F);
}

// Also where it would not be among the chosen.
TEST(ChooseExpertsTest, ALogitThatIsNotFiniteMakesAllWeightsNone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float broken : {kInfinity, -kInfinity, std::nanf("")}) {
    const auto chosen = chosen_of({1, broken, 2, 3}, 2);
    for (const auto& choice : chosen) {
      EXPECT_LT(choice.expert, 4U);
      EXPECT_TRUE(std::isnan(choice.weight)) << broken;
    }
    EXPECT_NE(chosen[0].expert, chosen[1].expert);
  }
}

}  // namespace
}  // namespace muster::engine
