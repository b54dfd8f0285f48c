#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

/// A file of lines that grows: each line goes out in one write to its end, so that no reader and no
/// kill sees half of one but as the last; and such a last half is cut when recording goes on.
///
/// Not thread-safe.
class LineRecorder {
 public:
  struct Options {
    std::filesystem::path file;
    std::uint64_t rotate_size = 0;  // bytes after which a new file is begun; 0: never
    std::uint32_t rotate_keep = 5;  // older files: FILE.1 is the newest of them
    std::string header = {};        // the first line of each file, with its end; empty: none
    /// Of files without a header: members of the JSON object on the first line, by which a file is
    /// known as one of these; the line begins with the first of them. Empty: any JSON is one.
    std::vector<std::string> keys = {};
  };

  /// Opens the file at its end, or makes it with its header.
  ///
  /// Errors: NotFound (no such folder), InvalidArgument (a folder, no permission, a file, or an
  /// older one, that is no recording or has another header), those of the system.
  static Result<LineRecorder> open(const Options& options);

  /// line: with its line end; or several, which stay together.
  ///
  /// Errors: ResourceExhausted (the disk is full; the line is cut off again), those of the system.
  Status write(std::string_view line);

 private:
  LineRecorder(Options options, UniqueFd fd, std::uint64_t size)
      : options_(std::move(options)), fd_(std::move(fd)), size_(size) {}

  Status append(std::string_view text);
  Status rotate();

  Options options_;
  UniqueFd fd_;
  std::uint64_t size_;  // bytes in the file
};

}  // namespace muster
