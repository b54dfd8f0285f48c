#include "hw/simulated/load_curve.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster {
namespace {

// The sum of `value` over [begin, end] by the midpoints of a fine grid.
template <typename Value>
double summed(double begin, double end, Value value) {
  constexpr int kPieces = 200'000;
  const auto width = (end - begin) / kPieces;
  double sum = 0;
  for (int i = 0; i < kPieces; ++i) sum += width * value(begin + width * (i + 0.5));
  return sum;
}

TEST(LoadCurve, TellsTheIntegralOfItsLoad) {
  const LoadCurve model(7, 3);
  const auto load = [&](double t) { return model.load(t); };
  EXPECT_NEAR(model.load_seconds(500.0) - model.load_seconds(13.7), summed(13.7, 500.0, load),
              1e-4);
}

TEST(LoadCurve, TellsHowLongItWasCapped) {
  const LoadCurve model(7, 3);
  const auto is_capped = [&](double t) { return model.load(t) > LoadCurve::kCapped ? 1.0 : 0.0; };
  const auto found = model.capped_seconds(333.3) - model.capped_seconds(0.0);
  EXPECT_GT(found, 0.0);
  EXPECT_NEAR(found, summed(0.0, 333.3, is_capped), 0.02);
}

TEST(LoadCurve, FollowsSlowlyWithoutAJumpAtTheTurn) {
  const LoadCurve model(1, 0);
  // y' = (load - y) / inertia, by a difference of 1 ms, at places within and at the turn.
  for (const double t :
       {0.5, 31.3, 120.0, LoadCurve::kPeriod - 0.0005, LoadCurve::kPeriod + 77.7}) {
    const auto slope = (model.slow_load(t + 0.0005) - model.slow_load(t - 0.0005)) / 0.001;
    EXPECT_NEAR(slope, (model.load(t) - model.slow_load(t)) / LoadCurve::kInertia, 1e-3) << t;
  }
}

TEST(LoadCurve, IsIdleAtTimesAndNeverOutOfRange) {
  for (std::uint64_t device = 0; device < 8; ++device) {
    const LoadCurve model(1, device);
    double idle = 0;
    double least = 1;
    double most = 0;
    for (double t = 0; t < LoadCurve::kPeriod; t += 0.25) {
      const auto load = model.load(t);
      least = std::min({least, load, model.slow_load(t), model.memory_share(t)});
      most = std::max({most, load, model.slow_load(t), model.memory_share(t)});
      if (load == 0.0) idle += 0.25;
    }
    EXPECT_GE(least, 0.0);
    EXPECT_LE(most, 1.0);
    EXPECT_GT(idle, 10.0) << "at least 20 of 120 points less the slopes";
    EXPECT_LT(idle, 60.0);
  }
}

TEST(LoadCurve, IsTheSameForTheSameSeedAndAnotherForAnother) {
  EXPECT_EQ(LoadCurve(5, 1).load(100.3), LoadCurve(5, 1).load(100.3));
  EXPECT_NE(LoadCurve(5, 1).load_seconds(240.0), LoadCurve(6, 1).load_seconds(240.0));
  EXPECT_NE(LoadCurve(5, 1).load_seconds(240.0), LoadCurve(5, 2).load_seconds(240.0));
}

}  // namespace
}  // namespace muster
