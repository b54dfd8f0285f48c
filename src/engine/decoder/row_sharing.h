#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/ops/thread_team.h"

namespace muster::engine {

/// Calls `each(row)` for every row below `count`, in any thread of the team. Few rows are done by
/// the caller, as waking the others for them would take longer.
template <typename Each>
void share_rows(ThreadTeam& team, std::size_t count, Each&& each) {
  constexpr std::size_t kRowsAlone = 3;   // so many rows are not shared out
  constexpr std::size_t kRowsAtOnce = 4;  // else an item is so many
  if (count <= kRowsAlone) {
    for (std::size_t row = 0; row < count; ++row) each(row);
    return;
  }
  team.share((count + kRowsAtOnce - 1) / kRowsAtOnce, [&](std::size_t item, std::size_t) {
    const std::size_t end = std::min(count, (item + 1) * kRowsAtOnce);
    for (std::size_t row = item * kRowsAtOnce; row < end; ++row) each(row);
  });
}

}  // namespace muster::engine
