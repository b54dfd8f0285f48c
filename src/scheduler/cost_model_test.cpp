#include "scheduler/cost_model.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(CostModel, AllowsALongFirstBatch) {
  const CostModel cost;
  EXPECT_EQ(cost.predict(1000), std::nullopt);
  EXPECT_EQ(cost.silence_allowed(1000), kFirstBatchAllowance);
}

TEST(CostModel, PredictsFromTheTokensOfTheLastBatches) {
  CostModel cost;
  cost.learn(1000, milliseconds(100));  // 0.1 ms a token
  EXPECT_EQ(cost.predict(2000), Duration(milliseconds(200)));
  cost.learn(1000, milliseconds(200));  // 0.1 + 0.2 x (0.2 - 0.1) = 0.12 ms a token
  EXPECT_NEAR(muster::seconds(*cost.predict(1000)), 0.12, 1e-9);
}

TEST(CostModel, AllowsFiveTimesThePredictionAndAtLeastASecond) {
  CostModel cost;
  cost.learn(1000, milliseconds(100));
  EXPECT_EQ(cost.silence_allowed(1000), Duration(seconds(1)));    // 5 x 0.1 s is below
  EXPECT_EQ(cost.silence_allowed(20000), Duration(seconds(10)));  // 5 x 2 s
}

}  // namespace
}  // namespace muster
