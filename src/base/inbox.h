#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace muster {

/// A bounded queue between threads: many push, one or more take.
///
/// Threads: thread-safe.
template <typename Item>
class Inbox {
 public:
  explicit Inbox(std::size_t capacity) : capacity_(capacity) {}

  /// Errors: ResourceExhausted when full, Cancelled when closed; the item is dropped and the caller
  /// may retry.
  Status push(Item item) {
    {
      const std::lock_guard lock(mutex_);
      if (is_closed_) {
        return Error{ErrorKind::Cancelled, "inbox is closed"};
      }
      if (items_.size() == capacity_) {
        return Error{ErrorKind::ResourceExhausted, "inbox is full: " + std::to_string(capacity_)};
      }
      items_.push_back(std::move(item));
    }
    changed_.notify_one();
    return Done{};
  }

  /// Waits for an item; nullopt once the inbox is closed and empty.
  std::optional<Item> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_closed_ || !items_.empty(); });
    if (items_.empty()) {
      return std::nullopt;
    }
    Item item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  /// nullopt where no item waits.
  std::optional<Item> try_take() {
    const std::lock_guard lock(mutex_);
    if (items_.empty()) return std::nullopt;
    Item item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  /// Closed and empty: nothing will ever be taken again.
  bool is_over() {
    const std::lock_guard lock(mutex_);
    return is_closed_ && items_.empty();
  }

  /// No more pushes; takers drain what is left and then see nullopt.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
    }
    changed_.notify_all();
  }

 private:
  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;  // guarded by mutex_
  bool is_closed_ = false;  // guarded by mutex_
};

}  // namespace muster
