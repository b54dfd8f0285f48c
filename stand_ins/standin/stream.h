#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace muster::standin {

/// A queue of work with a thread of its own: in order, one piece at a time, and late. A piece
/// begins when somebody waits for it, or one behind it, or after `delay`: whoever reads its result
/// without waiting finds it undone.
///
/// Threads: thread-safe. Work that never ends keeps the destructor from ending.
class Stream {
 public:
  using Work = std::function<void()>;

  /// begin: called first in the thread. Work must not throw.
  Stream(std::chrono::microseconds delay, Work begin);
  ~Stream();

  /// The number of the piece, from 1 on.
  std::uint64_t push(Work work);

  void wait_for_room();

  /// The numbers of the last pieces that were pushed and that are done; 0 without one.
  std::uint64_t last() const;
  std::uint64_t done() const;

  void wait_for(std::uint64_t number);

  /// So many may wait; a bound of our own, as CUDA's queues have one.
  static constexpr std::size_t kQueueMost = 1024;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Piece {
    Work work;
    Time due;
  };

  void run();

  const std::chrono::microseconds delay_;
  const Work begin_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // something was pushed, is hurried, or the stream ends
  std::condition_variable done_changed_;
  std::deque<Piece> queue_;  // guarded by mutex_, as all that follows
  std::uint64_t pushed_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t hurried_ = 0;  // somebody waits for this one
  bool is_ending_ = false;
  std::jthread thread_;  // the last member: it ends first
};

}  // namespace muster::standin
