#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace muster {

/// SHA-256 over what decides a vector: no two texts share one by accident or by design.
using CacheKey = std::array<std::byte, 32>;

/// Everything but the text, once for each model and prompt: equality class, pooling, normalisation,
/// prompt, length limit and side of truncation. Fields are separated by their lengths.
CacheKey cache_scope(std::span<const std::string_view> fields);

/// Of a text, or of token ids as their little-endian bytes (`is_ids`), within a scope.
CacheKey cache_key(const CacheKey& scope, std::string_view text, bool is_ids);

struct CacheOptions {
  std::uint64_t size_most = 256ull << 20;  // bytes of memory, all that the cache itself needs
                                           // included, and, with a file, of the file but for its
                                           // header (4 KiB); 0: off
  std::uint64_t entries_most = 1'000'000;  // 0: off
  std::optional<Duration> ttl = {};        // nullopt: none
  std::filesystem::path file = {};         // empty: memory alone
};

struct CacheStatus {
  std::uint64_t entry_count = 0;
  std::uint64_t size = 0;  // bytes of entries and of what finds them; at most size_most
  std::uint64_t hit_count = 0, miss_count = 0, evicted_count = 0, expired_count = 0;
  std::uint64_t damaged_count = 0;       // entries of the file that were torn and left out
  bool has_file = false;                 // one was asked for
  bool is_file_behind = false;           // `file_error` says why
  std::uint64_t file_failure_count = 0;  // times that writing it stopped working
};

/// Vectors by key, the least recently used thrown out first. A hit is bitwise what was put.
///
/// With a file, what was put survives `kill -9` of this process (and of the machine as far as it
/// had been written); a torn entry is found by its checksum and left out. Opening a file of another
/// version starts an empty one; opening costs O(entries), under a second for 256 MiB. After it, the
/// order in which entries are thrown out begins with that in which they were put.
/// Wall-clock time decides the TTL, so that it goes on over a restart.
///
/// Threads: owned by one loop.
class VectorCache {
 public:
  /// Errors: those of the file; Unavailable when another process has it open; InvalidArgument when
  /// it is a file of something else.
  static Result<std::unique_ptr<VectorCache>> open(const CacheOptions& options);
  virtual ~VectorCache() = default;

  /// The vector, valid until the next call; empty when it is not there or too old.
  virtual std::span<const float> find(const CacheKey& key, double unix_seconds) = 0;

  /// Vectors larger than a sixteenth of `size_most`, or than 65,536 floats, are not kept. Errors of
  /// the file are none of the cache: it goes on in memory, `file_error` tells, and `tend` has the
  /// file try again. A program that limits the size of files ignores SIGXFSZ.
  virtual void put(const CacheKey& key, std::span<const float> vector, double unix_seconds) = 0;

  virtual void clear() = 0;
  virtual CacheStatus status() const = 0;

  /// Called about once a second: after an error of the file it tries again, 1 s later, then after
  /// twice the time up to a minute, and then writes what is in memory, at most 4 MiB a call.
  virtual void tend(double unix_seconds) = 0;

  /// Why the file is behind the memory; nullopt once all is written again.
  virtual std::optional<Error> file_error() const = 0;
};

}  // namespace muster
