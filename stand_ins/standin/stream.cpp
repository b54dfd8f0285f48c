// Being late costs nothing where somebody waits anyway: then the queue is worked off at once.

#include "standin/stream.h"

#include <algorithm>
#include <utility>

namespace muster::standin {

Stream::Stream(std::chrono::microseconds delay, Work begin)
    : delay_(delay), begin_(std::move(begin)), thread_([this] { run(); }) {}

// What was pushed is done first, without delay.
Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
}

void Stream::wait_for_room() {
  std::unique_lock lock(mutex_);
  if (queue_.size() < kQueueMost) return;
  hurried_ = std::max(hurried_, pushed_);
  changed_.notify_all();
  done_changed_.wait(lock, [this] { return queue_.size() < kQueueMost; });
}

std::uint64_t Stream::push(Work work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back({std::move(work), std::chrono::steady_clock::now() + delay_});
  changed_.notify_all();
  return ++pushed_;
}

std::uint64_t Stream::last() const {
  const std::lock_guard lock(mutex_);
  return pushed_;
}

std::uint64_t Stream::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

void Stream::wait_for(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  hurried_ = std::max(hurried_, number);
  changed_.notify_all();
  done_changed_.wait(lock, [&] { return done_ >= number; });
}

void Stream::run() {
  begin_();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    changed_.wait_until(lock, queue_.front().due,
                        [this] { return is_ending_ || hurried_ > done_; });
    auto piece = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    piece.work();
    piece.work = nullptr;  // what it held is let go before it counts as done
    lock.lock();
    ++done_;
    done_changed_.notify_all();
  }
}

}  // namespace muster::standin
