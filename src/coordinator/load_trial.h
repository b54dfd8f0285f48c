#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace muster {

/// Measures what batches of a model cost on one device before it gets any work, so that deadlines,
/// sizes of batches and admission need not guess at the first request.
///
/// Rounds: in each, every lane computes one batch of the same size at the same time, because lanes
/// share caches and memory. The first round is one canary text; each next round is up to eight
/// times as large, until a round has taken 15 ms, is of the largest batch that the device gets, or
/// five were made. That is long enough: MiniLM in fp32 on one core with AVX-512 makes 6,000
/// tokens/s in batches of 8 texts of 20 tokens (27 ms) and 6,200 in batches of 30, but 5,500 of 6
/// and 4,200 of 1 (measured). No batch is expected to take more than 40 ms, since nobody is served
/// before; a model so slow that one canary text takes longer is measured by that one alone. The
/// very first forward of a worker, the canary itself, is not counted: it faults pages in and fills
/// caches.
///
/// Pure. Threads: owned by the coordinator's loop.
class LoadTrial {
 public:
  struct Round {
    std::uint64_t text_count = 0;   // copies of the canary's text
    std::uint64_t batch_count = 0;  // one for each lane
  };
  struct Measure {
    std::uint64_t token_count = 0;
    Duration engine{};    // of a batch, the mean of all lanes
    bool is_cut = false;  // one of them was, for want of memory
  };

  /// tokens_most: of a batch on this device.
  LoadTrial(std::uint64_t canary_tokens, std::uint64_t lane_count, std::uint64_t tokens_most);

  /// To be sent now.
  Round round() const { return {text_count_, lane_count_}; }

  /// One batch of the round was answered, cut for want of memory or whole; what the round measured
  /// once it was its last one.
  std::optional<Measure> on_batch(Duration engine, bool is_cut = false);

  /// After the last batch of a round: whether that was the last round.
  bool is_done() const { return is_done_; }

 private:
  std::uint64_t canary_tokens_;
  std::uint64_t lane_count_;
  std::uint64_t texts_most_;
  std::uint64_t text_count_ = 1;
  std::uint64_t answered_count_ = 0;
  Duration engine_sum_{0};
  bool is_any_cut_ = false;
  std::uint32_t round_count_ = 0;
  bool is_done_ = false;
};

}  // namespace muster
