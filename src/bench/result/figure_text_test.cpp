#include "bench/result/figure_text.h"

#include <gtest/gtest.h>

#include <limits>

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

TEST(FigureText, ComparisonsHaveTheUnitOfTheirFigure) {
  EXPECT_EQ(compared_text("latency_p50", 0.02), "20.0 ms");
  EXPECT_EQ(compared_text("throughput", 123.45), "123.5/s");
  EXPECT_EQ(compared_text("error_rate", 0.3), "30 %");
  EXPECT_EQ(compared_text("error_rate", 0.00125), "0.125 %");
}

TEST(FigureText, SaysWhyStagesAreDoubted) {
  EXPECT_EQ(stage_doubts_text({}, 60), "");
  EXPECT_EQ(stage_doubts_text({.too_long = 3, .left_out = 1200}, 60),
            "in 3 of 60 answers the server's stages are longer than it had the request: they "
            "overlap, or its clock is wrong; 1,200 of the times that the server reports are none, "
            "or of too many names");
  EXPECT_EQ(stage_doubts_text({.left_out = 2}, 60),
            "2 of the times that the server reports are none, or of too many names");
}

TEST(FigureText, RatiosFarFromOneAreBounds) {
  EXPECT_EQ(ratio_text(1.0631), "1.063");
  EXPECT_EQ(ratio_text(999.9), "999.900");
  EXPECT_EQ(ratio_text(1000), ">1000");
  EXPECT_EQ(ratio_text(2.2662307280768328e34), ">1000");
  EXPECT_EQ(ratio_text(std::numeric_limits<double>::infinity()), ">1000");
  EXPECT_EQ(ratio_text(0.001), "0.001");
  EXPECT_EQ(ratio_text(0.00099), "<0.001");
  EXPECT_EQ(ratio_text(0), "<0.001");
}

// A fifth of the answers is what is told of.
TEST(CutRateText, SaysHowMuchARateMisses) {
  EXPECT_EQ(cut_rate_text({}), "");
  EXPECT_EQ(cut_rate_text({.missed_at_end = 1, .answered = 6}), "");
  EXPECT_EQ(cut_rate_text({.missed_at_end = 1, .answered = 5}),
            "1 of 5 answers came after the sending had ended: answers/s may be up to 20 % too low, "
            "whatever its interval says; let it send longer");
  EXPECT_EQ(cut_rate_text({.missed_at_end = 2, .answered = 2, .counted_seconds = 1}),
            "2 of 2 answers came after the sending had ended, so there is no rate: let it send "
            "longer");
}

// As a trace has them whose times are all 0: a longer one of that kind has no rate either.
TEST(CutRateText, RequestsOfOneMomentHaveNoRateHoweverLong) {
  EXPECT_EQ(cut_rate_text({.missed_at_end = 9, .answered = 9}),
            "all requests that count were sent at one moment, so there is no rate");
}

// Half of the answers wait in a queue that the server cannot keep short: longer trials have a
// longer queue, and the same rate.
TEST(CutRateText, SaysNothingOfAQueueThatGrew) {
  EXPECT_EQ(cut_rate_text({.missed_at_end = 500, .answered = 1000, .has_kept_up = false}), "");
  EXPECT_NE(cut_rate_text({.missed_at_end = 500, .answered = 1000}), "");
  const auto none = cut_rate_text(
      {.missed_at_end = 2, .answered = 2, .counted_seconds = 1, .has_kept_up = false});
  EXPECT_NE(none.find("so there is no rate"), std::string::npos) << none;
}

}  // namespace
}  // namespace muster
