#pragma once

#include <cstdint>

namespace muster {

/// Counts the bytes that peers make a server hold, and says when more would be too much.
///
/// The last eighth is for those who hold little, so that probes and short requests get through
/// while long ones have taken the rest.
///
/// Threads: owned by one loop.
class MemoryBudget {
 public:
  /// A holder of no more than so much is small: a short request and its answer.
  static constexpr std::uint64_t kSmallBytes = 64 << 10;

  explicit MemoryBudget(std::uint64_t most) : most_(most) {}

  /// What one holder may have when nobody else holds anything.
  static constexpr std::uint64_t most_of_one(std::uint64_t most) { return most - most / 8; }

  /// Whether a holder of `before` bytes may hold `after`.
  bool has_room(std::uint64_t before, std::uint64_t after) const {
    if (after <= before) return true;
    const auto bound = after <= kSmallBytes ? most_ : most_of_one(most_);
    return held_ - before + after <= bound;
  }

  /// A holder of `before` bytes holds `after` now, whether there is room or not.
  void change(std::uint64_t before, std::uint64_t after) { held_ = held_ - before + after; }

  bool is_full() const { return held_ >= most_; }
  std::uint64_t held() const { return held_; }
  std::uint64_t most() const { return most_; }

 private:
  std::uint64_t most_;
  std::uint64_t held_ = 0;
};

}  // namespace muster
