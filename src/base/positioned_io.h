#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace muster {

/// Reads from `offset` on until `bytes` are full or the file ends: how many there were. The
/// descriptor's own position is neither used nor moved. path: for messages.
///
/// Errors: the system's. Threads: any, on one descriptor too.
Result<std::size_t> read_at(int fd, std::span<std::byte> bytes, std::uint64_t offset,
                            const std::filesystem::path& path);

/// Writes all of `bytes` from `offset` on, likewise. After an error a part of them may be there.
Status write_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset,
                const std::filesystem::path& path);

}  // namespace muster
