#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/ops/thread_team.h"

namespace muster::engine {

/// Rows [begin, end) of a step.
struct RowRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Which rows of a step are whose. With many rows every member of a team has a share of them, the
/// same in all that is done to rows one by one and in every product: what it reads it has written
/// itself, and finds in its own cache. With few rows, whose weights take longer to read than to
/// multiply, there is one share, and products are divided by their outputs.
///
/// Shares begin at multiples of 16 rows: a block of the cache, a tile.
class RowShares {
 public:
  /// Fewer rows than so many for each member are one share.
  static constexpr std::size_t kRowsLeast = 48;
  static constexpr std::size_t kUnit = 16;

  RowShares(std::size_t row_count, std::size_t team_size)
      : row_count_(row_count), count_(row_count < kRowsLeast * team_size ? 1 : team_size) {}

  std::size_t count() const { return count_; }

  RowRange range(std::size_t share) const { return {begin(share), begin(share + 1)}; }

  /// Rows of the largest share.
  std::size_t longest() const {
    const std::size_t units = (row_count_ + kUnit - 1) / kUnit;
    return std::min(row_count_, (units + count_ - 1) / count_ * kUnit);
  }

 private:
  std::size_t begin(std::size_t share) const {
    const std::size_t units = (row_count_ + kUnit - 1) / kUnit;
    return std::min(row_count_, share_begin(share, count_, units) * kUnit);
  }

  std::size_t row_count_;
  std::size_t count_;
};

/// Calls `each(row, member)` for every row below `count`, in any thread of the team. Few rows are
/// done by the caller, member 0, as waking the others for them would take longer.
template <typename Each>
void share_rows(ThreadTeam& team, std::size_t count, Each&& each) {
  constexpr std::size_t kRowsAlone = 3;  // so many rows are not shared out
  constexpr std::size_t kFewAtOnce = 4;  // rows of an item where there is one share
  if (count <= kRowsAlone) {
    for (std::size_t row = 0; row < count; ++row) each(row, std::size_t{0});
    return;
  }
  const std::size_t at_once =
      RowShares(count, team.size()).count() == 1 ? kFewAtOnce : RowShares::kUnit;
  team.share((count + at_once - 1) / at_once, [&](std::size_t item, std::size_t member) {
    const std::size_t end = std::min(count, (item + 1) * at_once);
    for (std::size_t row = item * at_once; row < end; ++row) each(row, member);
  });
}

}  // namespace muster::engine
