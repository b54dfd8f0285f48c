#include "serving/model_roster.h"

#include <gtest/gtest.h>

#include <optional>

namespace muster {
namespace {

TEST(ModelRoster, HasNoMoreThanItMay) {
  ModelRoster roster(2);
  auto first = roster.enter();
  auto second = roster.enter();
  ASSERT_TRUE(first && second);
  const auto third = roster.enter();
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(third.error().message, "models_most allows 2 models at a time");
  EXPECT_EQ(roster.count(), 2U);
  first->leave();
  EXPECT_EQ(roster.count(), 1U);
  EXPECT_TRUE(roster.enter());
}

TEST(ModelRoster, ANameIsOneModelsUntilItLeaves) {
  ModelRoster roster(8);
  auto old = roster.enter();
  auto other = roster.enter();
  ASSERT_TRUE(old && other);
  EXPECT_FALSE(roster.has_name("chat"));
  ASSERT_TRUE(old->take_name("chat"));
  EXPECT_TRUE(old->take_name("chat")) << "it is its own";
  EXPECT_TRUE(roster.has_name("chat"));
  const auto refused = other->take_name("chat");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "a model of that name is there: chat");
  old->leave();
  EXPECT_FALSE(roster.has_name("chat"));
  EXPECT_TRUE(other->take_name("chat"));
}

TEST(ModelRoster, ATicketThatIsMovedKeepsItsPlace) {
  ModelRoster roster(1);
  std::optional<ModelRoster::Ticket> kept;
  {
    auto ticket = roster.enter();
    ASSERT_TRUE(ticket);
    kept = *std::move(ticket);
  }
  EXPECT_FALSE(roster.enter()) << "the place is still taken";
  kept.reset();
  EXPECT_TRUE(roster.enter());
}

}  // namespace
}  // namespace muster
