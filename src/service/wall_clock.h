#pragma once

#include <chrono>

namespace muster {

/// Seconds since 1970 by the machine's wall clock, for what outlives the process: ages in a cache
/// file, when a model came. Threads: thread-safe.
inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace muster
