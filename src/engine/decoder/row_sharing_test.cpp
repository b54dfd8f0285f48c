#include "engine/decoder/row_sharing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster::engine {
namespace {

TEST(RowSharesTest, SharesJoinAndBeginAtMultiplesOf16) {
  for (std::size_t team = 1; team <= 8; ++team) {
    for (std::size_t rows = 0; rows <= 2000; ++rows) {
      const RowShares shares(rows, team);
      ASSERT_EQ(shares.count(), rows < 48 * team ? 1 : team);
      std::size_t end = 0;
      std::size_t most = 0;
      for (std::size_t i = 0; i < shares.count(); ++i) {
        const auto range = shares.range(i);
        ASSERT_EQ(range.begin, end) << rows << " rows, " << team << " members";
        ASSERT_EQ(range.begin % 16, 0U);
        ASSERT_GE(range.end, range.begin);
        end = range.end;
        most = std::max(most, range.end - range.begin);
      }
      ASSERT_EQ(end, rows);
      ASSERT_GE(shares.longest(), most);
      ASSERT_LE(shares.longest(), most + 16);
    }
  }
}

// A product of so many rows, in items of one share after the other, and what is done row by row:
// each member begins with the same row in both.
TEST(RowSharesTest, AMemberHasTheSameRowsInEverything) {
  for (std::size_t team = 2; team <= 8; ++team) {
    for (std::size_t rows = 48 * team; rows <= 1000; ++rows) {
      const RowShares shares(rows, team);
      const std::size_t units = (rows + 15) / 16;
      for (std::size_t i = 0; i < team; ++i) {
        ASSERT_EQ(share_begin(i, team, units) * 16, shares.range(i).begin);
        ASSERT_EQ(share_begin(i, team, 7 * team), 7 * i);
      }
    }
  }
}

TEST(ShareRowsTest, EveryRowIsDoneOnce) {
  for (const std::size_t size : {1U, 2U, 3U}) {
    ThreadTeam team(size);
    for (const std::size_t count : {0U, 1U, 3U, 4U, 95U, 96U, 97U, 144U, 500U}) {
      std::vector<int> done(count);
      share_rows(team, count, [&](std::size_t row, std::size_t member) {
        ASSERT_LT(member, size);
        ++done[row];
      });
      EXPECT_EQ(done, std::vector<int>(count, 1));
    }
  }
}

}  // namespace
}  // namespace muster::engine
