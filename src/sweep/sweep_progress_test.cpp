#include "sweep/sweep_progress.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Indices = std::vector<std::size_t>;

std::vector<SweepPoint> three_points() {
  std::vector<SweepPoint> points(3);
  points[0].id = "a";
  points[1].id = "b";
  points[2].id = "c";
  return points;
}

TEST(PointsToMeasure, AreThoseThatAreMissingOrNotValid) {
  const auto points = three_points();
  const std::map<std::string, bool> kept{{"a", true}, {"b", false}, {"of another file", true}};
  EXPECT_EQ(*points_to_measure(points, kept, SweepStart::Resume, "x.csv and x.points"),
            (Indices{1, 2}));
  EXPECT_EQ(*points_to_measure(points, kept, SweepStart::Restart, "x.csv and x.points"),
            (Indices{0, 1, 2}));
  EXPECT_EQ(*points_to_measure(points, {{"a", true}, {"b", true}, {"c", true}}, SweepStart::Resume,
                               "x.csv and x.points"),
            Indices{});
}

TEST(PointsToMeasure, AreNotMeasuredTwiceUnasked) {
  const auto points = three_points();
  EXPECT_EQ(*points_to_measure(points, {{"of another file", true}}, SweepStart::Fresh,
                               "x.csv and x.points"),
            (Indices{0, 1, 2}));
  const auto refused =
      points_to_measure(points, {{"b", true}}, SweepStart::Fresh, "x.csv and x.points");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(refused.error().message,
            "x.csv and x.points have 1 of the 3 points already: --resume measures what is missing, "
            "--restart drops them and measures all");
}

}  // namespace
}  // namespace muster
