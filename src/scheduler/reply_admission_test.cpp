#include "scheduler/reply_admission.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Verdict = ReplyAnswer::Verdict;

TEST(ReplyAdmission, WhoFindsAPlaceDoesNotWait) {
  const auto answer = ask_for_places({.free_count = 3, .waiting = {{"", 2}}}, "", 1);
  EXPECT_EQ(answer.verdict, Verdict::LetIn);
  EXPECT_EQ(answer.place_count, 0U);
}

TEST(ReplyAdmission, SixtyFourMayWaitBehindTheFreePlaces) {
  EXPECT_EQ(ask_for_places({.free_count = 2, .waiting = {{"", 65}}}, "", 1).verdict,
            Verdict::LetIn);
  const auto refused = ask_for_places({.free_count = 2, .waiting = {{"", 66}}}, "", 1);
  EXPECT_EQ(refused.verdict, Verdict::NoRoom);
  EXPECT_EQ(refused.waiting_count, 64U);
  EXPECT_EQ(ask_for_places({.free_count = 2, .waiting = {{"", 60}}}, "", 7).verdict,
            Verdict::NoRoom)
      << "a request's replies are let in together";
}

// With one more 32 of "a" would leave room for 32, and with two more 33 for 31.
TEST(ReplyAdmission, AKeyLeavesAsMuchRoomAsItTakes) {
  EXPECT_EQ(ask_for_places({.waiting = {{"a", 31}}}, "a", 1).verdict, Verdict::LetIn);
  const auto refused = ask_for_places({.waiting = {{"a", 32}}}, "a", 1);
  EXPECT_EQ(refused.verdict, Verdict::OthersRoom);
  EXPECT_EQ(refused.waiting_count, 32U);
  EXPECT_EQ(ask_for_places({.waiting = {{"a", 32}}}, "b", 1).verdict, Verdict::LetIn);
  EXPECT_EQ(ask_for_places({.waiting = {{"", 63}}}, "", 1).verdict, Verdict::LetIn)
      << "without a key nobody is to be protected";
}

// One of "b" waits. Before it are its own and two of "a", whose turns come between; and itself.
TEST(ReplyAdmission, KeysTakeTurnsForPlaces) {
  EXPECT_EQ(ask_for_places({.waiting = {{"a", 20}, {"b", 1}}}, "b", 1).place_count, 4U);
  EXPECT_EQ(ask_for_places({.waiting = {{"a", 20}, {"b", 1}}}, "a", 1).place_count, 22U);
  EXPECT_EQ(ask_for_places({.free_count = 1, .waiting = {{"a", 20}}}, "b", 1).place_count, 1U);
}

}  // namespace
}  // namespace muster
