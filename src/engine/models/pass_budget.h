#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace muster::engine {

/// How many tokens a pass may have on a device whose memory others may take: half after a pass ran
/// out of memory, and twice as much again after kPassesToGrow that did not.
///
/// Threads: any.
class PassBudget {
 public:
  static constexpr std::size_t kPassesToGrow = 32;

  explicit PassBudget(std::size_t most) : most_(most), now_(most) {}

  std::size_t now() const { return now_; }

  /// A pass of `token_count` found no memory.
  void on_out_of_memory(std::size_t token_count) {
    good_passes_ = 0;
    now_ = std::max<std::size_t>(1, std::min(now_.load(), token_count) / 2);
  }

  void on_pass() {
    if (now_ == most_ || ++good_passes_ < kPassesToGrow) return;
    good_passes_ = 0;
    now_ = std::min(most_, 2 * now_);
  }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> now_;
  std::atomic<std::size_t> good_passes_ = 0;
};

}  // namespace muster::engine
