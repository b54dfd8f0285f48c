#pragma once

#include <functional>
#include <thread>

#include "base/stop_signal.h"

namespace muster {

/// Makes a descriptor of a question, whose answer wakes nobody: for calls that block and that
/// HttpClientOptions::cancel_fd ends.
///
/// Threads: one of its own asks `is_cancelled` ten times a second, until it is so or this is
/// destroyed.
class CancelWatch {
 public:
  explicit CancelWatch(std::function<bool()> is_cancelled);
  ~CancelWatch() { over_.raise(); }
  CancelWatch(const CancelWatch&) = delete;
  CancelWatch& operator=(const CancelWatch&) = delete;

  /// Readable once it is cancelled.
  int fd() const { return cancelled_.fd(); }

 private:
  StopSignal cancelled_;
  StopSignal over_;
  std::jthread thread_;  // the last, as it uses both
};

}  // namespace muster
