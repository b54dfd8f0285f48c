#pragma once

#include <chrono>

namespace muster {

/// Seconds since 1970 by the machine's wall clock, for what outlives the process or is told outside
/// it: ages in a cache file, when a model came, the time of a sample. Threads: thread-safe.
inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace muster
