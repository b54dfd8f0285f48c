#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/hash.h"
#include "base/result.h"

namespace muster {

/// Adds the bytes [begin, end) of a file to `hash`.
///
/// Errors: those of opening it; Corrupt when it ends before.
Status hash_bytes_of(const std::filesystem::path& path, std::uint64_t begin, std::uint64_t end,
                     Hash128& hash);

}  // namespace muster
