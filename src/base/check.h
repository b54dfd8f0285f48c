#pragma once

namespace muster {

/// Prints the broken claim with its place on stderr and aborts.
[[noreturn]] void check_failed(const char* claim, const char* file, int line);

}  // namespace muster

/// Stops the process when an invariant of our own code is broken; it stays on in release builds.
/// Anything that input, files or peers can cause is an Error instead.
#define MUSTER_CHECK(claim)                               \
  do {                                                    \
    if (!(claim)) {                                       \
      ::muster::check_failed(#claim, __FILE__, __LINE__); \
    }                                                     \
  } while (false)
