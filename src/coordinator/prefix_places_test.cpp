#include "coordinator/prefix_places.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace muster {
namespace {

using Candidates = std::vector<PrefixCandidate>;
using Ids = std::vector<std::uint32_t>;

std::vector<PrefixKey> keys_of(const Ids& ids) { return prefix_keys(0, ids, 1); }

TEST(PrefixPlacesTest, AmongTheLeastBusyTheLongestMatchIsChosen) {
  PrefixPlaces places(3);
  places.on_given(1, keys_of({1, 2, 3}), 10);
  places.on_given(2, keys_of({1, 2, 3, 4, 5}), 10);
  const auto keys = keys_of({1, 2, 3, 4, 9});
  EXPECT_EQ(places.match(0, keys), 0U);
  EXPECT_EQ(places.match(1, keys), 3U);
  EXPECT_EQ(places.match(2, keys), 4U);
  EXPECT_EQ(places.choose(Candidates{{0, 2}, {1, 2}, {2, 2}}, keys), 2U);
  EXPECT_EQ(places.choose(Candidates{{0, 2}, {1, 2}, {2, 3}}, keys), 1U);
  EXPECT_EQ(places.choose(Candidates{{0, 1}, {1, 2}, {2, 2}}, keys), 0U) << "it is less busy";
  EXPECT_EQ(places.choose(Candidates{{2, 0}}, keys_of({7})), 2U);
  EXPECT_EQ(places.choose(Candidates{{1, 0}, {2, 0}}, keys_of({7})), 1U) << "the first of equals";
  EXPECT_EQ(places.choose(Candidates{{1, 0}, {2, 0}}, {}), 1U);
  EXPECT_EQ(places.choose({}, keys), std::nullopt);
}

TEST(PrefixPlacesTest, AWorkerThatStartsAnewHasNothing) {
  PrefixPlaces places(2);
  places.on_given(0, keys_of({1, 2}), 10);
  places.on_given(1, keys_of({1}), 10);
  places.forget(0);
  EXPECT_EQ(places.match(0, keys_of({1, 2})), 0U);
  EXPECT_EQ(places.match(1, keys_of({1, 2})), 1U);
}

TEST(PrefixPlacesTest, WhatWasUsedLongAgoIsForgottenFromItsEndOn) {
  PrefixPlaces places(1);
  places.on_given(0, keys_of({1, 2, 3}), 5);
  places.on_given(0, keys_of({7}), 5);
  places.on_given(0, keys_of({1, 2}), 5);  // used again
  EXPECT_EQ(places.match(0, keys_of({1, 2, 3})), 3U);
  places.on_given(0, keys_of({8, 9}), 5);  // one too many: the 3, which was used first
  EXPECT_EQ(places.match(0, keys_of({1, 2, 3})), 2U);
  EXPECT_EQ(places.match(0, keys_of({7})), 1U);
  places.on_given(0, keys_of({4, 5, 6}), 5);  // three: the 7, then the 2 and the 1
  EXPECT_EQ(places.match(0, keys_of({7})), 0U);
  EXPECT_EQ(places.match(0, keys_of({1, 2})), 0U);
  EXPECT_EQ(places.match(0, keys_of({8, 9})), 2U);
  EXPECT_EQ(places.match(0, keys_of({4, 5, 6})), 3U);
}

}  // namespace
}  // namespace muster
