#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/hash.h"
#include "base/result.h"

namespace muster {

/// Adds the bytes [begin, end) of a file to `hash`.
///
/// Errors: those of opening it; Corrupt when it ends before, also when another process cuts it
/// shorter meanwhile.
Status hash_bytes_of(const std::filesystem::path& path, std::uint64_t begin, std::uint64_t end,
                     Hash128& hash);

/// The error of a file whose bytes were there and are not any more: Corrupt.
Error cut_short(const std::string& name);

}  // namespace muster
