#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

namespace muster::engine {

/// Where the share `share` of `share_count` begins, of `count` items; that of number share_count:
/// where the last one ends.
constexpr std::size_t share_begin(std::size_t share, std::size_t share_count, std::size_t count) {
  return share * count / share_count;
}

/// The items of one piece of work after the other, each done once by whoever claims it: a fork and
/// join. Items are put in shares. A member begins with its own share, from its first item on: so it
/// works on the same rows in one piece of work after the other, which are in its core's cache. Then
/// it takes the last items of other shares, so that a thread that the system keeps off its core
/// holds nobody up. A member that looks for items while they are put may begin with another's.
///
/// Threads: `put` and `finish` by one thread at a time, in turns; the rest by any.
class ClaimedItems {
 public:
  using Call = void (*)(void* work, std::size_t index, std::size_t member);

  /// member_count: at least 1. Members are numbered from 0.
  explicit ClaimedItems(std::size_t member_count) : shares_(member_count) {}

  /// From here on `call(work, index, member)` can be claimed for each index below `count`, in
  /// shares by `share_begin`. share_count: from 1 to member_count; the share of a member is number
  /// `member % share_count`.
  void put(std::size_t count, std::size_t share_count, Call call, void* work);

  /// Claims an item and does it as `member`; false where none is left.
  bool do_one(std::size_t member);

  /// By the thread that has put them, when it can claim none any more: waits for those that others
  /// have claimed. What an item has thrown, of several items what one of them has; nullptr: none
  /// has.
  [[nodiscard]] std::exception_ptr finish();

  /// Whether there is an item that nobody has claimed.
  bool has_some() const;

  /// Grows with each `put` and with the end. Who has read it, and then finds neither the end nor an
  /// item, sleeps in `wait_for_more` until it has grown, if `wake_all` follows; or looks at it
  /// again.
  std::uint32_t put_count() const { return puts_.load(); }
  void wait_for_more(std::uint32_t puts_seen) { puts_.wait(puts_seen); }
  void wake_all() { puts_.notify_all(); }

  /// No items come any more.
  void end();
  bool has_ended() const { return has_ended_.load(); }

 private:
  struct alignas(64) Share {
    // Of what nobody does yet: begin, and end in the upper half.
    std::atomic<std::uint64_t> bounds{0};
    // Whoever has claimed an item of this share may read these two: they change only when all are
    // done.
    Call call = nullptr;
    void* work = nullptr;
    // By the member of this number, of any share, since the start; may wrap.
    std::atomic<std::uint32_t> done{0};
  };

  const Share* claim(std::size_t member, std::size_t& index);
  void keep_failure();

  // Each claim reads these two; they hardly ever change.
  std::vector<Share> shares_;
  std::atomic<std::size_t> share_count_{1};
  // This line is written by each `put`.
  alignas(64) std::atomic<std::uint32_t> puts_{0};
  std::atomic<bool> has_ended_{false};
  std::uint32_t put_items_ = 0;  // since the start; may wrap. Its reader is the thread that puts
  // Written by the first item that throws, read when all are done.
  std::atomic_flag has_failed_;
  std::exception_ptr failure_;
};

/// For a loop that waits: left to the core's other hardware thread, if it has one.
void pause_briefly();

}  // namespace muster::engine
