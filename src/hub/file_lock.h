#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hub/pull_events.h"

namespace muster {

/// A lock that processes share by a file, as huggingface_hub takes it: flock on a file that stays.
/// It ends with this object or the process.
///
/// Threads: not thread-safe. Source: filelock 4, _unix.py (`UnixFileLock`).
class FileLock {
 public:
  /// Waits for as long as another process holds it, and says so once.
  ///
  /// what: for that notice, "model.safetensors". Errors: Cancelled; Unsupported where the file
  /// system has no locks; those of the system.
  static Result<FileLock> take(const std::filesystem::path& path, const std::string& what,
                               const PullEvents& events);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace muster
