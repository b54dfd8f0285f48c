#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

/// Descriptors at which a collector starts its sampler.
inline constexpr int kSamplerSocket = 3;
inline constexpr int kSamplerPage = 4;
inline constexpr int kSamplerRing = 5;
/// `muster-sampler --of-build BUILD`: who starts it names its own build, as the messages are those
/// of one build.
inline constexpr const char* kSamplerFlag = "--of-build";

/// Is the sampler: reads Watch from the socket, opens the drivers, and tells what they say until
/// the socket ends: samples through the ring, all else in frames. It then ends the process at once,
/// whatever call a driver is in. A machine that cannot be watched is Refused, and the process ends
/// with the error's exit code.
///
/// It returns only where page or ring cannot be mapped. Errors: those of the system.
Status run_sampler(UniqueFd socket, UniqueFd page, UniqueFd ring, const Clock& clock);

}  // namespace muster
