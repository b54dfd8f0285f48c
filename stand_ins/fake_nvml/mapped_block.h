#pragma once

#include <cstddef>
#include <filesystem>

#include "base/result.h"

namespace muster::fake_nvml {

/// Maps the first `size` bytes of a file for reading and writing, shared with every process that
/// does; the file is made, and filled up with zeros, where it must be. Owner: the caller unmaps.
///
/// Errors: those of `system_error`.
Result<void*> map_shared(const std::filesystem::path& path, std::size_t size);

}  // namespace muster::fake_nvml
