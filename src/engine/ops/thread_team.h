#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <type_traits>
#include <vector>

#include "engine/ops/claimed_items.h"

namespace muster::engine {

/// Threads that share the work of one step: the caller and a helper for each further core of the
/// device. Who computes an item changes no bit of it.
///
/// A helper without work polls for `kPollTime` and then sleeps until the next work comes: between
/// two products of a step it stays awake, between two requests it costs nothing.
///
/// Threads: `share` by one thread at a time, the same for all calls.
class ThreadTeam {
 public:
  static constexpr std::chrono::microseconds kPollTime{200};

  /// size: threads in all, at least 1. on_start: what each helper calls first, with its number from
  /// 1 on; to choose its core, for example.
  ///
  /// Errors: std::system_error where the system has no more threads, std::bad_alloc; no helper is
  /// left then.
  explicit ThreadTeam(std::size_t size, std::function<void(std::size_t)> on_start = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  std::size_t size() const { return helpers_.size() + 1; }

  /// How many helpers sleep now. Threads: any.
  std::size_t sleeper_count() const { return sleeping_.load(); }

  /// Calls `item(index, member)` for every index below `count`, each once, in any thread of the
  /// team (`member` says which: 0 to size() - 1); a member begins with its own share
  /// (ClaimedItems). Returns when all have returned. What an item throws is thrown here, of several
  /// items what one of them does, when none is at work any more; some may not have been called
  /// then.
  template <typename Item>
  void share(std::size_t count, Item&& item) {
    if (helpers_.empty() || count < 2) {
      for (std::size_t i = 0; i < count; ++i) item(i, std::size_t{0});
      return;
    }
    start(
        count,
        [](void* work, std::size_t index, std::size_t member) {
          (*static_cast<std::remove_reference_t<Item>*>(work))(index, member);
        },
        &item);
  }

 private:
  void start(std::size_t count, ClaimedItems::Call call, void* work);
  void end_helpers();
  void help(std::size_t member);
  void await_more(std::uint32_t puts_seen);

  ClaimedItems items_;
  alignas(64) std::atomic<std::uint32_t> sleeping_{0};
  std::vector<std::thread> helpers_;
};

}  // namespace muster::engine
