#include "jobs/context_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster {
namespace {

void expect_room(const ReplyRoom& room, std::uint32_t least, std::uint32_t wanted) {
  EXPECT_EQ(room.least, least);
  EXPECT_EQ(room.wanted, wanted);
}

TEST(ReplyRoom, IsThatOfAWholeReplyUpToAQuarterOfTheContext) {
  expect_room(reply_room(1024, 8192), 64, 1024);
  expect_room(reply_room(1024, 4096), 64, 1024);
  expect_room(reply_room(1024, 2048), 64, 512);
  expect_room(reply_room(4, 64), 4, 4);
  expect_room(reply_room(40, 64), 32, 32);
}

TEST(PairsLeftOut, AreTheFewestThatDo) {
  for (std::size_t count = 0; count <= 9; ++count) {
    for (std::size_t needed = 0; needed <= count; ++needed) {
      EXPECT_EQ(pairs_left_out(count, [&](std::size_t out) { return out >= needed; }), needed)
          << count;
    }
  }
}

TEST(PairsLeftOut, AreNoneWhereNothingHelps) {
  EXPECT_EQ(pairs_left_out(0, [](std::size_t) { return false; }), std::nullopt);
  EXPECT_EQ(pairs_left_out(5, [](std::size_t) { return false; }), std::nullopt);
}

TEST(PairsLeftOut, AsksAboutFewNumbersAndNeverAboutMoreThanThereAre) {
  std::vector<std::size_t> asked;
  EXPECT_EQ(pairs_left_out(1000,
                           [&](std::size_t out) {
                             asked.push_back(out);
                             return out >= 700;
                           }),
            700U);
  EXPECT_LE(asked.size(), 12U);
  EXPECT_LE(*std::ranges::max_element(asked), 1000U);
}

}  // namespace
}  // namespace muster
