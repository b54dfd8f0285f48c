#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cache/block_pool.h"

namespace muster {

inline constexpr std::size_t kCacheHeaderSize = 4096;

/// The file of a cache: a header, then the blocks as they lie in memory. It is written at each put
/// and read once, at opening: a file that somebody cuts short, or a disk that is full, is an error
/// of a write and never a signal.
///
/// Threads: owned by one loop.
/// Source: docs/formats/vector-cache.md.
class CacheFile {
 public:
  /// Opens or makes the file, and locks it until this is destroyed or the process ends.
  ///
  /// Errors: Unavailable when another process has it; InvalidArgument when it is a file of
  /// something else; those of the system.
  static Result<std::unique_ptr<CacheFile>> open(const std::filesystem::path& path);

  /// The header was of this program's making, but broken; the blocks were thrown away.
  bool was_broken() const { return was_broken_; }

  /// Fills the pool from its first block on; blocks that the pool has no room for are cut off.
  /// Returns how many blocks were filled.
  Result<std::size_t> read_blocks(BlockPool& pool);

  /// Puts whole blocks in the place of the `first`th and those after it.
  Status write_blocks(BlockIndex first, std::span<const std::byte> blocks);

  /// Throws all blocks away.
  Status clear();

 private:
  CacheFile(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Status read_header(std::uint64_t size);
  Status start_anew();

  std::filesystem::path path_;
  UniqueFd fd_;
  bool was_broken_ = false;
};

}  // namespace muster
