#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

namespace muster::engine {

/// The items of one piece of work, each done once by whoever claims it: a fork and join by two
/// counters. Each member has a share of them, which it does from the first item on: what it does in
/// one piece of work after the other has the same place in all, and is in its core's cache. Who has
/// done its own takes the last ones of others, so that a thread that the system keeps off its core
/// holds nobody up.
///
/// Threads: `put` and `finish` by one thread at a time, in turns; the rest by any.
class ClaimedItems {
 public:
  using Call = void (*)(void* work, std::size_t index, std::size_t member);

  /// share_count: of all work; members beyond it begin with others' shares. With one share items
  /// are claimed in their order.
  explicit ClaimedItems(std::size_t share_count = 1) : shares_(share_count) {}

  /// Share `i` of `n` is the items from i x count / n to (i + 1) x count / n. From here on
  /// `call(work, index, member)` can be claimed for each index below `count`.
  void put(std::size_t count, Call call, void* work);

  /// Claims an item and does it as `member`; false where none is left.
  bool do_one(std::size_t member);

  /// By who has put them, when it can claim none any more: waits for those that others have
  /// claimed. What an item has thrown, of several items what one of them has; nullptr: none has.
  [[nodiscard]] std::exception_ptr finish();

  /// Whether a sleeper has something to wake for: an item that nobody has claimed, or the end.
  bool has_some() const { return left_.load() != 0; }

  /// Sleeps while `has_some()` is false; `wake_all` behind `put` wakes who sleeps.
  void wait_for_some() { left_.wait(0); }
  void wake_all() { left_.notify_all(); }

  /// No items come any more.
  void end();
  bool has_ended() const { return left_.load() == kEnd; }

 private:
  static constexpr std::uint32_t kEnd = 0xffffffffU;  // in `left_`, so that a sleeper wakes

  /// Items that nobody does yet, from `begin` (lower half) to `end` (upper half).
  struct alignas(64) Share {
    std::atomic<std::uint64_t> bounds{0};
  };

  std::size_t pick(std::size_t member);
  void keep_failure();

  // Work is claimed by taking one off `left_`, which one is picked from the shares then. Whoever
  // has claimed an item may read the three below: they change only when every claimed item is done.
  alignas(64) std::atomic<std::uint32_t> left_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};
  std::vector<Share> shares_;
  std::size_t count_ = 0;
  Call call_ = nullptr;
  void* work_ = nullptr;
  // Written by the first item that throws, read when all are done.
  std::atomic_flag has_failed_;
  std::exception_ptr failure_;
};

/// For a loop that waits: left to the core's other hardware thread, if it has one.
void pause_briefly();

}  // namespace muster::engine
