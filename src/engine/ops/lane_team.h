#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/ops/claimed_items.h"

namespace muster::engine {

/// Below how much work nobody is asked to help, in multiplications with an addition: of these a
/// core makes 40,000 (float32) to 100,000 (bf16) a microsecond. Waking a lane takes it some 50
/// microseconds, and sharing out costs one or two.
struct SharingLimits {
  std::uint64_t pass = std::uint64_t{1} << 24U;   // of a pass, for each lane that computes it
  std::uint64_t share = std::uint64_t{1} << 20U;  // of what is shared out at once
};

/// For a device whose lanes have nothing to share.
inline constexpr std::uint64_t kMoreThanAnyWork = std::numeric_limits<std::uint64_t>::max();
inline constexpr SharingLimits kNothingShared{.pass = kMoreThanAnyWork, .share = kMoreThanAnyWork};

/// The lanes of a device, which lend each other their cores: a lane without a batch of its own
/// helps the others with theirs, so that a lone query or one long text has the whole device. With
/// as many batches as lanes each lane computes its own alone, which is quickest for many texts.
///
/// A pass is shared out in items: panels of outputs, blocks of rows, heads with some queries. No
/// sum is ever divided, so who computes an item, and how many items there are, changes no bit.
///
/// The items are divided into as many shares as lanes are wanted and idle, and a lane begins with
/// the share of its number modulo theirs (ClaimedItems): with the same lanes idle it meets the same
/// panels of a weight in each pass, which are in its core's cache.
///
/// One lane at a time shares out, with whoever is idle; what another one would share meanwhile it
/// does alone. A helper leaves between two items as soon as a lane is called.
///
/// An idle lane polls for `kPollTime` after it has become one, did an item or woke, but only while
/// another lane computes; then it sleeps until it is called or wanted. Between two passes nobody
/// polls, except where who computes is never idle itself (a benchmark). Of lanes that sleep those
/// with the lowest numbers are woken first: so lone queries mostly go to the same lane, with warm
/// caches, and not to the core of the thread that has just sent them.
///
/// Threads: any; a member number belongs to one thread at a time. It outlives its seats.
class LaneTeam {
 public:
  static constexpr std::chrono::microseconds kPollTime{200};

  /// size: how many lanes there are, numbered from 0; with fewer than two nobody helps.
  explicit LaneTeam(std::size_t size, SharingLimits limits = {})
      : size_(size), limits_(limits), items_(size), sleepers_(size) {}
  LaneTeam(const LaneTeam&) = delete;
  LaneTeam& operator=(const LaneTeam&) = delete;

  std::size_t size() const { return size_; }
  const SharingLimits& limits() const { return limits_; }

  /// How many lanes are without a batch, and of them how many sleep.
  std::size_t idle_count() const { return idle_.load(); }
  std::size_t sleeper_count() const { return sleeping_.load(); }

  /// Grows with each `call`.
  std::uint32_t call_count() const { return calls_.load(); }

  /// There is something for a lane to look at: a batch, or the end. Every lane that is awake in
  /// `help` comes out of it, and one of those that sleep; with `call_all` every one.
  void call();
  void call_all();

  /// Helps, as `member`, which is below size(), while `call_count()` is `calls_seen`: what a lane
  /// does that has read the count and then found no batch.
  void help(std::size_t member, std::uint32_t calls_seen);

 private:
  friend class LaneSeat;

  struct Sharer {
    std::size_t member = 0;
    std::size_t lanes_most = 1;
  };
  bool try_share(const Sharer& sharer, std::size_t count, ClaimedItems::Call item, void* work,
                 std::chrono::nanoseconds& helped);
  static void do_item(void* team, std::size_t index, std::size_t member);
  void sleep(std::size_t member, std::uint32_t calls_seen);
  void wake_helpers(std::size_t helpers_most);
  std::size_t wake(std::size_t count);

  // Of a lane: Awake, Asleep since it says so itself, Woken since another has chosen it.
  struct alignas(64) Sleeper {
    std::atomic<std::uint32_t> state{0};
  };

  const std::size_t size_;
  const SharingLimits limits_;
  ClaimedItems items_;
  alignas(64) std::atomic<std::size_t> idle_{0};
  std::atomic<std::size_t> sleeping_{0};  // at least as many as are Asleep
  std::atomic<std::uint32_t> calls_{0};
  std::vector<Sleeper> sleepers_;  // by member
  // Held by the lane that shares out; the rest is its own, and read by who has claimed an item.
  alignas(64) std::atomic_flag is_shared_;
  std::size_t sharer_ = 0;
  ClaimedItems::Call item_ = nullptr;
  void* work_ = nullptr;
  std::atomic<std::chrono::nanoseconds::rep> helped_ns_{0};
};

/// What is shared out at once.
struct SharedWork {
  std::size_t count = 0;   // items
  std::uint64_t work = 0;  // of all of them, as in SharingLimits
};

/// A lane's place in its team, by which it shares out what it computes. Without a team, or with
/// little work, the lane does everything by itself.
///
/// Owner: the lane. Threads: the lane's own.
class LaneSeat {
 public:
  LaneSeat() = default;
  LaneSeat(LaneTeam& team, std::size_t member) : team_(&team), member_(member) {}

  /// Its number, which the items get that it does itself.
  std::size_t member() const { return member_; }

  /// A pass begins which is so much work.
  void begin_pass(std::uint64_t work);

  /// How many lanes would do so much work now: this one and those that are idle.
  std::size_t lanes_now(std::uint64_t work) const;

  /// Calls `item(index, member)` for every index below `count`, each once, in any lane of the team,
  /// and returns when all have returned. What an item throws is thrown here, when none is at work
  /// any more; some may not have been called then. An item shares nothing out itself.
  template <typename Item>
  void share(const SharedWork& what, Item&& item) {
    if (what.count > 1 && lanes_now(what.work) > 1) {
      const auto call = [](void* work, std::size_t index, std::size_t member) {
        (*static_cast<std::remove_reference_t<Item>*>(work))(index, member);
      };
      if (team_->try_share({member_, lanes_most_}, what.count, call, &item, helped_)) return;
    }
    for (std::size_t i = 0; i < what.count; ++i) item(i, member_);
  }

  /// How long others have computed for this lane since the last call, all of them together.
  std::chrono::nanoseconds take_helped() {
    return std::exchange(helped_, std::chrono::nanoseconds(0));
  }

 private:
  LaneTeam* team_ = nullptr;
  std::size_t member_ = 0;
  std::size_t lanes_most_ = 1;  // of this pass
  std::chrono::nanoseconds helped_{0};
};

}  // namespace muster::engine
