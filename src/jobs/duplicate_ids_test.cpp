#include "jobs/duplicate_ids.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(DuplicateIds, AnIdThatCameBeforeIsNoticed) {
  DuplicateIds ids;
  EXPECT_FALSE(ids.add("a"));
  EXPECT_FALSE(ids.add("b"));
  EXPECT_TRUE(ids.add("a"));
  EXPECT_TRUE(ids.add("a"));
  EXPECT_FALSE(ids.add("A"));
}

TEST(DuplicateIds, ThoseOfTheFirstMillionAreKnownToTheEnd) {
  DuplicateIds ids;
  for (std::size_t i = 0; i < DuplicateIds::kIdsMost; ++i) {
    EXPECT_FALSE(ids.is_full());
    ASSERT_FALSE(ids.add(std::to_string(i))) << i;
  }
  EXPECT_TRUE(ids.is_full());
  EXPECT_FALSE(ids.add("new")) << "it is not kept";
  EXPECT_FALSE(ids.add("new"));
  for (const auto* id : {"0", "524288", "1048575"}) EXPECT_TRUE(ids.add(id)) << id;
}

}  // namespace
}  // namespace muster
