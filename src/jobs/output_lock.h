#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

/// Keeps OUT and the files beside it for one run. It is a lock of the kernel on a file of its own,
/// so it ends with the process that holds it, however that ends; the file may stay, and means
/// nothing.
///
/// Threads: not thread-safe.
class OutputLock {
 public:
  /// `path`: the lock's file. `out`: what it keeps, and `how` another is named, for the message.
  ///
  /// Errors: Unavailable when another process has it, naming it; InvalidArgument when `path` is a
  /// link or holds anything else than a lock, which stays as it is; those of creating and locking.
  static Result<OutputLock> take(const std::filesystem::path& path,
                                 const std::filesystem::path& out,
                                 std::string_view how = "with -o");

  /// For who only reads: whether no run that lives has OUT. Makes and changes no file; holds the
  /// lock for an instant where nobody has it.
  ///
  /// Errors: Unavailable when one has it, naming it.
  static Status check_free(const std::filesystem::path& path, const std::filesystem::path& out);

  OutputLock(OutputLock&& other) noexcept;
  OutputLock& operator=(OutputLock&&) = delete;
  /// Removes the file, and lets go.
  ~OutputLock();

 private:
  OutputLock(UniqueFd fd, std::filesystem::path path);

  UniqueFd fd_;
  std::filesystem::path path_;
};

}  // namespace muster
