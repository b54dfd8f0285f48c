#include "engine/sampling/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace muster::engine {
namespace {

std::vector<float> logs(const std::vector<double>& probabilities, double shift = 0) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p) + shift));
  return logits;
}

// p = (1/2, 1/4, 1/4), q = (1/4, 1/4, 1/2): log 2 / 2 + 0 - log 2 / 4.
TEST(Divergence, IsTheSumOfTheFormula) {
  const auto p = logs({0.5, 0.25, 0.25});
  const auto q = logs({0.25, 0.25, 0.5});
  EXPECT_NEAR(divergence(p, q), std::log(2.0) / 4, 1e-6);
}

// p = (9/10, 1/10), q = (1/2, 1/2): 0.9 log 1.8 + 0.1 log 0.2, and the other way round
// log(0.5 / 0.9) / 2 + log(0.5 / 0.1) / 2.
TEST(Divergence, IsFromTheReference) {
  const auto p = logs({0.9, 0.1});
  const auto q = logs({0.5, 0.5});
  EXPECT_NEAR(divergence(p, q), 0.9 * std::log(1.8) + 0.1 * std::log(0.2), 1e-6);
  EXPECT_NEAR(divergence(q, p), (std::log(0.5 / 0.9) + std::log(0.5 / 0.1)) / 2, 1e-6);
}

// Logits tell probabilities up to a constant, and exponentials of a thousand overflow.
TEST(Divergence, OfTheSameProbabilitiesIsNone) {
  const auto p = logs({0.7, 0.2, 0.1});
  EXPECT_EQ(divergence(p, p), 0);
  EXPECT_NEAR(divergence(p, logs({0.7, 0.2, 0.1}, 1000)), 0, 1e-6);
}

TEST(Divergence, OfWhatIsNoNumberIsNone) {
  const std::vector<float> broken{1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_TRUE(std::isnan(divergence(logs({0.5, 0.5}), broken)));
  EXPECT_TRUE(std::isnan(divergence(broken, logs({0.5, 0.5}))));
}

}  // namespace
}  // namespace muster::engine
