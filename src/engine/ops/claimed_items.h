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
/// join. Each member has a share of the items, which it does from the first one on: so it works on
/// the same rows in one piece of work after the other, which are in its core's cache, and all its
/// claims but the first find their line there. Who has done its own takes the last ones of others,
/// so that a thread that the system keeps off its core holds nobody up. Who looks for items while
/// they are put may begin with another's.
///
/// Threads: `put` and `finish` by one thread at a time, in turns; the rest by any.
class ClaimedItems {
 public:
  using Call = void (*)(void* work, std::size_t index, std::size_t member);

  /// share_count: of all work; members beyond it begin with others' shares. With one share items
  /// are claimed in their order.
  explicit ClaimedItems(std::size_t share_count = 1) : shares_(share_count) {}

  /// From here on `call(work, index, member)` can be claimed for each index below `count`, in
  /// shares by `share_begin`.
  void put(std::size_t count, Call call, void* work);

  /// Claims an item and does it as `member`; false where none is left.
  bool do_one(std::size_t member);

  /// By who has put them, when it can claim none any more: waits for those that others have
  /// claimed. What an item has thrown, of several items what one of them has; nullptr: none has.
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
  // A line of a member's own: others come to it when they have done theirs, and at the end.
  struct alignas(64) Share {
    // Of what nobody does yet: begin, and end in the upper half.
    std::atomic<std::uint64_t> bounds{0};
    std::atomic<std::uint32_t> done{0};  // by this member, of any share
  };

  bool claim(std::size_t member, std::size_t& index);
  void keep_failure();

  std::vector<Share> shares_;
  alignas(64) std::atomic<std::uint32_t> puts_{0};
  std::atomic<bool> has_ended_{false};
  // Whoever has claimed an item may read these three: they change only when all are done.
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
