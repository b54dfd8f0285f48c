#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace muster {

/// Notices ids that came before, among the first million: 16 MiB, whatever the input.
///
/// An id counts as its XXH3 of 64 bits: that two of a million different ones have the same has a
/// probability of 3e-8.
/// Threads: not thread-safe.
class DuplicateIds {
 public:
  static constexpr std::size_t kIdsMost = 1 << 20;

  /// True when the id has come before. False for every new one once it is full.
  bool add(std::string_view id);

  /// New ids are not kept any more.
  bool is_full() const { return count_ >= kIdsMost; }

 private:
  bool insert(std::uint64_t hash);
  void grow();

  std::vector<std::uint64_t> slots_;  // 0: free; a power of two of them, at most half of them taken
  std::size_t count_ = 0;
};

}  // namespace muster
