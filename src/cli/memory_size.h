#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace muster {

/// "1g", "512m", "2GiB", "4096": units of 1024, as docker's.
///
/// Errors: InvalidArgument. Source: docker/go-units, RAMInBytes.
Result<std::uint64_t> parse_memory_size(std::string_view flag, std::string_view text);

}  // namespace muster
