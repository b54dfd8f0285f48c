#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace muster {

/// How often something is done, as `flag` was given it: "100ms", "0.5s", "1s", "2m"; from 10 ms to
/// an hour.
///
/// Errors: InvalidArgument. Threads: pure.
Result<Duration> parse_interval(std::string_view flag, std::string_view text);

}  // namespace muster
