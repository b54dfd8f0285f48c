#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"

namespace muster {

/// What steps of a decoder that only generates take, by their number of tokens, learnt from its
/// steps. It need not grow evenly: kernels take rows in groups, and one more may begin another.
///
/// Pure. Threads: owned by one.
class StepCost {
 public:
  /// A step of so many tokens, those of drafts among them, took so long.
  void learn(std::uint32_t token_count, Duration time);

  /// The seconds of a step of so many tokens. One that was not seen for the last 256 steps is on
  /// the line between its neighbours that were; beyond all of them each token takes a quarter of a
  /// token's share of the nearest, so that what may pay is tried. Where nothing is known at all, of
  /// a step that takes 1 s.
  double seconds_of(std::uint32_t token_count) const;

 private:
  struct Size {
    double seconds = 0;
    std::uint64_t seen_at = 0;  // the number of its latest step; 0: none
  };
  bool is_known(std::size_t token_count) const;

  std::array<Size, 289> sizes_{};  // by tokens: 256 sequences, 32 of drafts
  std::uint64_t step_count_ = 0;
};

}  // namespace muster
