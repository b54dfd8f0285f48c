#include "serving/flight_table.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

CacheKey key_of(std::string_view text) { return cache_key(cache_scope({}), text, false); }

TEST(FlightTable, EqualTextsShareOneFlight) {
  FlightTable flights;
  auto& first = flights.add(1, key_of("a"));
  first.waiters.push_back({.call = 10, .position = 0});
  ASSERT_NE(flights.find(1, key_of("a")), nullptr);
  EXPECT_EQ(flights.find(1, key_of("a"))->item, first.item);
  EXPECT_EQ(flights.find(1, key_of("b")), nullptr);
  EXPECT_EQ(flights.count(), 1U);
}

TEST(FlightTable, AFlightThatLandedIsGoneForNewcomers) {
  FlightTable flights;
  const auto item = flights.add(1, key_of("a")).item;
  const auto landed = flights.take(item);
  ASSERT_TRUE(landed);
  EXPECT_EQ(landed->model, 1U);
  EXPECT_EQ(flights.find(1, key_of("a")), nullptr);
  EXPECT_FALSE(flights.take(item));
}

TEST(FlightTable, LivesUntilItsLastWaiterLeaves) {
  FlightTable flights;
  auto& flight = flights.add(1, key_of("a"));
  const auto item = flight.item;
  flight.waiters = {
      {.call = 10, .position = 0}, {.call = 11, .position = 3}, {.call = 10, .position = 5}};
  EXPECT_FALSE(flights.leave(item, 10));
  EXPECT_EQ(flights.find(1, key_of("a"))->waiters.size(), 1U);
  EXPECT_TRUE(flights.leave(item, 11));
  EXPECT_EQ(flights.count(), 0U);
  EXPECT_FALSE(flights.leave(item, 11));
}

TEST(FlightTable, TwoModelsDoNotShareAText) {
  FlightTable flights;
  const auto first = flights.add(1, key_of("a")).item;
  EXPECT_EQ(flights.find(2, key_of("a")), nullptr);
  const auto second = flights.add(2, key_of("a")).item;
  ASSERT_TRUE(flights.take(first));
  EXPECT_EQ(flights.find(1, key_of("a")), nullptr);
  ASSERT_NE(flights.find(2, key_of("a")), nullptr);
  EXPECT_EQ(flights.find(2, key_of("a"))->item, second);
}

TEST(FlightTable, FlightsWithoutAKeyAreNeverShared) {
  FlightTable flights;
  const auto first = flights.add(1, std::nullopt).item;
  const auto second = flights.add(1, std::nullopt).item;
  EXPECT_LT(first, second);
  EXPECT_EQ(flights.count(), 2U);
}

}  // namespace
}  // namespace muster
