#include "base/inbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace muster {
namespace {

TEST(Inbox, GivesItemsInTheOrderTheyCame) {
  Inbox<int> inbox(2);
  ASSERT_TRUE(inbox.push(1));
  ASSERT_TRUE(inbox.push(2));
  EXPECT_EQ(inbox.take(), 1);
  EXPECT_EQ(inbox.take(), 2);
}

TEST(Inbox, RefusesWhenFull) {
  Inbox<int> inbox(1);
  ASSERT_TRUE(inbox.push(1));
  EXPECT_EQ(inbox.push(2).error().kind, ErrorKind::ResourceExhausted);
}

TEST(Inbox, CloseLetsTakersDrainAndThenStop) {
  Inbox<int> inbox(2);
  ASSERT_TRUE(inbox.push(1));
  inbox.close();
  EXPECT_EQ(inbox.push(2).error().kind, ErrorKind::Cancelled);
  EXPECT_EQ(inbox.take(), 1);
  EXPECT_EQ(inbox.take(), std::nullopt);
}

TEST(Inbox, WakesAWaitingTaker) {
  Inbox<int> inbox(1);
  std::jthread taker([&] { EXPECT_EQ(inbox.take(), 7); });
  ASSERT_TRUE(inbox.push(7));
}

}  // namespace
}  // namespace muster
