#include "report/axis.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster {
namespace {

using Labels = std::vector<std::string>;

Labels labels(const PlotAxis& axis, std::size_t count_most) {
  Labels texts;
  for (const auto& tick : ticks_of(axis, count_most)) texts.push_back(tick.label);
  return texts;
}

TEST(Ticks, AreRoundNumbers) {
  EXPECT_EQ(labels({AxisScale::Linear, 0, 1}, 5),
            (Labels{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(labels({AxisScale::Linear, 0, 1050}, 6),
            (Labels{"0", "200", "400", "600", "800", "1000"}));
  EXPECT_EQ(labels({AxisScale::Linear, 0.3, 0.72}, 6), (Labels{"0.3", "0.4", "0.5", "0.6", "0.7"}));
}

TEST(Ticks, OfLogarithmsArePowersOfTen) {
  EXPECT_EQ(labels({AxisScale::Log, 0.9, 1200}, 6), (Labels{"1", "10", "100", "1000"}));
  EXPECT_EQ(labels({AxisScale::Log, 1.5, 40}, 6), (Labels{"2", "5", "10", "20"}));
  // Twelve decades, at most six steps: every second power.
  EXPECT_EQ(labels({AxisScale::Log, 1, 1e12}, 6),
            (Labels{"1", "100", "10000", "1e+06", "1e+08", "1e+10", "1e+12"}));
}

TEST(Ticks, AreNoneWhereNothingCanBeShown) {
  EXPECT_TRUE(labels({AxisScale::Linear, 1, 1}, 6).empty());
  EXPECT_TRUE(labels({AxisScale::Log, 0, 1}, 6).empty());
  EXPECT_TRUE(labels({AxisScale::Linear, 0, std::numeric_limits<double>::infinity()}, 6).empty());
}

TEST(PlotAxis, PlacesValues) {
  const PlotAxis linear{AxisScale::Linear, 0, 50};
  EXPECT_EQ(linear.place(25), 0.5);
  EXPECT_EQ(linear.place(60), 1);
  EXPECT_EQ(linear.place(-1), 0);
  const PlotAxis powers{AxisScale::Log, 1, 100};
  EXPECT_DOUBLE_EQ(powers.place(10), 0.5);
  EXPECT_EQ(powers.place(0), 0);
}

TEST(AxisFor, TakesLogarithmsBeyondAFactorOfTwenty) {
  EXPECT_EQ(axis_for(1, 20).scale, AxisScale::Linear);
  EXPECT_EQ(axis_for(1, 20).low, 0);
  EXPECT_EQ(axis_for(1, 20).high, 21);
  EXPECT_EQ(axis_for(1, 21).scale, AxisScale::Log);
  EXPECT_LT(axis_for(1, 21).low, 1);
  EXPECT_EQ(axis_for(0, 0).high, 1) << "there is nothing to show";
}

}  // namespace
}  // namespace muster
