#include "bench/result/figure_text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(FigureText, HasThreeDigitsAndNoExponent) {
  EXPECT_EQ(figure_text(123.6), "124");
  EXPECT_EQ(figure_text(12.34), "12.3");
  EXPECT_EQ(figure_text(1.234), "1.23");
  EXPECT_EQ(figure_text(0.0012), "0.001");
  EXPECT_EQ(figure_text(-12.34), "-12.3");
}

TEST(FigureText, ShowsTimesAndRatesInTheirUnits) {
  EXPECT_EQ(milliseconds_text(0.02), "20.0");
  EXPECT_EQ(time_text(0.0123), "12.3 ms");
  EXPECT_EQ(time_text(4.561), "4.56 s");
  EXPECT_EQ(figure_rate_text(999.4), "999");
  EXPECT_EQ(figure_rate_text(1234.5), "1,235");
}

}  // namespace
}  // namespace muster
