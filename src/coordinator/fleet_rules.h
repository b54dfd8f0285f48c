#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace muster {

/// How a worker came to its end, as far as its batches are concerned.
enum class WorkerEnd : std::uint8_t {
  Innocent,  // from outside, by an operator, or for what is not its texts' doing
  Died,      // of its own fault: a fatal signal that it raised, an exit code
  Silent,    // killed because a batch took too long
};

/// What a worker group had when it was lost.
struct GroupLoss {
  WorkerEnd end = WorkerEnd::Innocent;
  std::string reason;                    // how it was lost, in words
  std::vector<std::uint64_t> running{};  // the frames that a lane was computing, oldest first
};

/// What becomes of a batch whose worker has ended.
enum class BatchFate : std::uint8_t {
  Again,      // waits as if it had never left
  Apart,      // a strike: each of its texts runs alone
  Elsewhere,  // as it is on another device: rather the device hangs than a text
};

/// Only what was running can be the cause. A death takes the batch apart at once, because texts
/// that kill are the usual reason and each death costs a start; a hang may as well be the device's,
/// and taking hundreds of texts apart would cost the others more than the hang did. A batch that
/// has come back once already, or that no other device can take, is taken apart.
BatchFate fate_of_batch(WorkerEnd end, bool was_running, bool is_suspected, bool has_peer);

/// Gives one batch for each device's turn, so that the first device does not take all that waits.
///
/// in_flight: how many batches device i has. slots: how many it may have now, 0 when it gets none.
/// is_empty: nothing waits any more. give: gives device i one batch, if there is one for it.
template <typename InFlight, typename Slots, typename IsEmpty, typename Give>
void feed_in_turns(std::size_t device_count, const InFlight& in_flight, const Slots& slots,
                   const IsEmpty& is_empty, const Give& give) {
  std::size_t depth_end = 0;
  for (std::size_t i = 0; i < device_count; ++i) depth_end = std::max(depth_end, slots(i));
  for (std::size_t depth = 0; depth < depth_end; ++depth) {
    for (std::size_t i = 0; i < device_count; ++i) {
      if (is_empty()) return;
      if (in_flight(i) <= depth && in_flight(i) < slots(i)) give(i);
    }
  }
}

}  // namespace muster
