#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/ops/fetch_runs.h"

namespace muster::engine {

/// Keys and values that each member of a team will read in the attention of a layer, for the
/// products before it to fetch. Which blocks those are is the same in every layer without a window:
/// they are listed once a step, as the first layer has them.
///
/// Threads: `clear`, `add` and `begin_layer` by one; then `of(i)` by member i.
class CacheFetches {
 public:
  /// 4 MiB: what is fetched and is not read soon drives out what is. Measured with up to 2.4 MiB,
  /// on a core whose second-level cache holds 1 MiB: it is read from the third-level cache then.
  static constexpr std::size_t kRunsMost = 1024;

  explicit CacheFetches(std::size_t team_size) : members_(team_size) {}

  void clear();
  /// bytes: one behind the other, of the first layer. Nothing beyond kRunsMost runs of a member.
  void add(std::size_t member, std::span<const std::byte> bytes);
  /// From here on all that was added is fetched so many bytes further on.
  void begin_layer(std::size_t offset);

  FetchRuns* of(std::size_t member) { return &members_[member].runs; }

 private:
  struct alignas(64) Member {
    std::vector<const std::byte*> begins;
    FetchRuns runs;
  };

  std::vector<Member> members_;
};

}  // namespace muster::engine
