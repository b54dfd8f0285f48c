#include "scheduler/place_forecast.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::seconds;

constexpr TimePoint kStart{};

TEST(PlaceForecast, NothingIsKnownBeforeAllAreTaken) {
  PlaceForecast forecast;
  EXPECT_FALSE(forecast.wait(1, kStart));
  forecast.on_freed(3, kStart + seconds(9));
  EXPECT_FALSE(forecast.wait(1, kStart + seconds(9))) << "some were free: nobody had to wait";
}

// Two in four seconds, and then 2 s more without one: 3 s each.
TEST(PlaceForecast, TheWaitIsTheMeanGapForEachPlace) {
  PlaceForecast forecast;
  forecast.set_full(true, kStart);
  forecast.on_freed(2, kStart + seconds(4));
  EXPECT_EQ(forecast.wait(1, kStart + seconds(4)), seconds(2));
  EXPECT_EQ(forecast.wait(5, kStart + seconds(4)), seconds(10));
  EXPECT_EQ(forecast.wait(1, kStart + seconds(6)), seconds(3));
  EXPECT_EQ(forecast.wait(0, kStart + seconds(6)), seconds(0));
}

TEST(PlaceForecast, BeforeTheFirstComesFreeItTakesAsLongAsItHasTaken) {
  PlaceForecast forecast;
  forecast.set_full(true, kStart);
  EXPECT_EQ(forecast.wait(64, kStart), seconds(0));
  EXPECT_EQ(forecast.wait(64, kStart + seconds(7)), seconds(7));
  forecast.set_full(false, kStart + seconds(8));
  EXPECT_FALSE(forecast.wait(1, kStart + seconds(8))) << "none came free: they went";
}

// Between 4 s and 100 s nobody had to wait for a place.
TEST(PlaceForecast, TimeInWhichPlacesAreFreeDoesNotCount) {
  PlaceForecast forecast;
  forecast.set_full(true, kStart);
  forecast.on_freed(1, kStart + seconds(3));
  forecast.set_full(false, kStart + seconds(4));
  EXPECT_FALSE(forecast.is_full());
  EXPECT_EQ(forecast.wait(1, kStart + seconds(50)), seconds(4));
  forecast.set_full(true, kStart + seconds(100));
  EXPECT_EQ(forecast.wait(1, kStart + seconds(102)), seconds(6));
}

// 1 s each for long, and then 10 s each: after 32 of these they weigh 1 - (1 - 1/32)^32 = 0.64, so
// the mean is about 1 + 9 x 0.64 = 6.7 s.
TEST(PlaceForecast, OlderPlacesCountLess) {
  PlaceForecast forecast;
  forecast.set_full(true, kStart);
  auto now = kStart;
  for (int i = 0; i < 1000; ++i) forecast.on_freed(1, now += seconds(1));
  EXPECT_NEAR(muster::seconds(*forecast.wait(1, now)), 1, 1e-6);
  for (int i = 0; i < 32; ++i) forecast.on_freed(1, now += seconds(10));
  EXPECT_NEAR(muster::seconds(*forecast.wait(1, now)), 6.74, 0.01);
}

}  // namespace
}  // namespace muster
