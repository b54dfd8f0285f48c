#include "scheduler/cost_model.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;

TEST(CostModel, KnowsNothingBeforeTheFirstBatch) {
  const CostModel cost;
  EXPECT_EQ(cost.predict(1000), std::nullopt);
}

TEST(CostModel, PredictsFromTheTokensOfTheLastBatches) {
  CostModel cost;
  cost.learn(1000, milliseconds(100));  // 0.1 ms a token
  EXPECT_EQ(cost.predict(2000), Duration(milliseconds(200)));
  cost.learn(1000, milliseconds(200));  // 0.1 + 0.2 x (0.2 - 0.1) = 0.12 ms a token
  EXPECT_NEAR(muster::seconds(*cost.predict(1000)), 0.12, 2e-9);
}

TEST(CostModel, KeepsTheCostOfSmallBatchesApart) {
  CostModel cost;
  cost.learn(100, milliseconds(11));                               // 1 ms + 0.1 ms a token
  cost.learn(1000, milliseconds(101));                             // likewise
  EXPECT_NEAR(muster::seconds(*cost.predict(400)), 0.041, 2e-9);   // on the line through both
  EXPECT_NEAR(muster::seconds(*cost.predict(10)), 0.0011, 2e-9);   // as 100 cost: 0.11 ms a token
  EXPECT_NEAR(muster::seconds(*cost.predict(2000)), 0.202, 2e-9);  // as 1000 cost
  EXPECT_NEAR(*cost.tokens_per_second(), 1000 / 0.101, 1e-6);
}

}  // namespace
}  // namespace muster
