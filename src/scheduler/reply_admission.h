#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

namespace muster {

/// The replies of a decoder as admission sees them.
struct ReplyQueue {
  std::size_t free_count = 0;                            // places that the next ones get at once
  std::size_t waiting_most = 64;                         // that may wait for one
  std::map<std::string_view, std::size_t> waiting = {};  // that no worker has, by caller
};

/// What is to become of replies that are asked for.
struct ReplyAnswer {
  enum class Verdict : std::uint8_t {
    LetIn,       // unless the wait for its place would be too long
    NoRoom,      // too many would wait
    OthersRoom,  // the room that is left is for other callers
  };
  Verdict verdict = Verdict::LetIn;
  std::size_t waiting_count = 0;  // that wait already; OthersRoom: of this caller
  std::size_t place_count = 0;    // LetIn: that have to come free before it has one
};

/// Whether a caller's replies are let in, by how many wait already. Those for whom there is a place
/// do not wait. A caller with a name of whom some wait has at most as much of the room as it
/// leaves, so that there is always some for one of whom none does. Callers take turns: of each
/// other one as many are before a reply as its own caller has, and that reply.
///
/// reply_count: at least one; those of a request are let in together.
/// Pure. Source of the share: Choudhury and Hahne 1998, "Dynamic queue length thresholds for
/// shared-memory packet switches", IEEE/ACM Transactions on Networking 6(2); the factor is 1.
ReplyAnswer ask_for_places(const ReplyQueue& queue, std::string_view caller,
                           std::size_t reply_count);

}  // namespace muster
