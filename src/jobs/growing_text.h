#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

/// A text file of a run while it grows: buffered, with a hash of what it gained since the last
/// mark and one of the whole.
///
/// Threads: not thread-safe; one at a time, but for `make_durable`.
class GrowingText {
 public:
  /// Opens the file, made where it is not there, and cuts it to `size` bytes, which are read once
  /// for the hash of the whole.
  ///
  /// Errors: those of opening and cutting; Corrupt when it is shorter.
  static Result<GrowingText> open(const std::filesystem::path& path, std::uint64_t size);

  /// Appends to the buffer, and writes it when it is full. Errors: those of writing.
  Status append(std::string_view text);

  struct Mark {
    std::uint64_t size = 0;  // bytes of the file
    std::string hash;        // of what it gained since the mark before, or since `open`
  };
  /// Writes the buffer. Errors: those of writing.
  Result<Mark> mark();

  /// Errors: those of the system.
  Status make_durable() const;

  /// Of all that was marked.
  std::uint64_t size() const { return size_; }
  std::string whole_hash() const { return whole_hash_.hex(); }

 private:
  GrowingText(std::filesystem::path path, UniqueFd fd, std::uint64_t size, Hash128 whole_hash);
  Status flush();

  std::filesystem::path path_;
  UniqueFd fd_;
  std::uint64_t size_;  // written
  std::string buffer_;
  Hash128 hash_;        // of what was written since the mark
  Hash128 whole_hash_;  // of all of it
};

}  // namespace muster
