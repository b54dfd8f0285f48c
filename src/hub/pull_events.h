#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"

namespace muster {

/// A pull at one moment.
struct PullProgress {
  std::uint64_t bytes_done = 0;  // on this machine, those of earlier runs too
  std::uint64_t bytes_all = 0;
  std::size_t files_done = 0;
  std::size_t files_all = 0;
  std::string file;  // the one that grows
};

/// How a pull talks to whoever started it. All are set; all are called on its own thread.
struct PullEvents {
  std::function<void(const PullProgress&)> on_progress;        // often: with each piece that came
  std::function<void(const std::string& sentence)> on_notice;  // why it waits
  std::function<bool()> is_cancelled;
  std::function<void(Duration)> wait;  // ends early when it is cancelled
};

}  // namespace muster
