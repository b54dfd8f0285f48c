#include "worker/row_closeness.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace muster {
namespace {

// Cosines 1, 0.6 and -1: the second row is (3, 4) beside (1, 0).
TEST(RowCloseness, IsTheMeanAndTheLeastCosine) {
  const std::vector<float> rows{2, 0, 3, 4, 0, -1};
  const std::vector<float> reference{1, 0, 1, 0, 0, 5};
  const auto closeness = row_closeness(rows, reference, 2);
  EXPECT_NEAR(closeness.mean, 0.2, 1e-12);
  EXPECT_NEAR(closeness.min, -1, 1e-12);
}

// A least value that passed over them would be 1: as if the others were all there are.
TEST(RowCloseness, ARowThatIsNotFiniteIsFar) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float wrong : {kNan, kInfinity, -kInfinity}) {
    const std::vector<float> rows{1, 0, wrong, 1};
    const std::vector<float> reference{1, 0, 1, 1};
    const auto closeness = row_closeness(rows, reference, 2);
    EXPECT_EQ(closeness.mean, 0.5) << wrong;
    EXPECT_EQ(closeness.min, 0) << wrong;
  }
}

}  // namespace
}  // namespace muster
