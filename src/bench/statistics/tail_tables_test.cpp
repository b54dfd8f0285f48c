#include "bench/statistics/tail_tables.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// Source: Abramowitz and Stegun, tables 26.5, 26.8 and 26.10.
TEST(TailTables, AreThoseOfTheBooks) {
  EXPECT_NEAR(normal_quantile(0.975), 1.95996, 5e-6);
  EXPECT_NEAR(student_quantile(0.975, 9), 2.262, 5e-4);
  EXPECT_NEAR(student_quantile(0.995, 18), 2.878, 5e-4);
  EXPECT_NEAR(student_quantile(0.95, 2), 2.920, 5e-4);
  EXPECT_NEAR(chi_squared_quantile(0.99, 1), 6.635, 5e-4);
  EXPECT_NEAR(chi_squared_quantile(0.99, 10), 23.209, 5e-4);
}

TEST(TailTables, TheBinomialSumsItsTerms) {
  // Of ten coins at most four show heads: (1 + 10 + 45 + 120 + 210) / 1024.
  EXPECT_NEAR(binomial_cdf(4, 10, 0.5), 386.0 / 1024, 1e-12);
  EXPECT_NEAR(binomial_cdf(0, 6, 0.5), 1.0 / 64, 1e-12);
  EXPECT_EQ(binomial_cdf(-1, 10, 0.5), 0);
  EXPECT_EQ(binomial_cdf(10, 10, 0.5), 1);
}

}  // namespace
}  // namespace muster
