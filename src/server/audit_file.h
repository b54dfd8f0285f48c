#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

/// The file below the name of an audit log. It is opened again when the name leads elsewhere, and
/// after an error. A line that a full disk has cut is ended before the next one, so that a fault
/// never costs more than its own line.
///
/// Threads: not thread-safe; used by one thread.
class AuditFile {
 public:
  explicit AuditFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Errors: those of the system; Unavailable for a pipe that nobody reads; InvalidArgument for a
  /// file that holds something else.
  Status open();

  /// All of it or, when the disk is full, what fits: `written` says how much. A pipe that is full
  /// is waited for as long as `may_wait` says.
  Status write(std::string_view lines, std::size_t& written, const std::function<bool()>& may_wait);

 private:
  Status check_content() const;
  Error failed(int why);
  bool wait_for_reader(const std::function<bool()>& may_wait) const;
  bool is_moved() const;

  const std::filesystem::path path_;
  UniqueFd fd_;
  bool is_torn_ = false;    // the file ends inside a line
  bool is_broken_ = false;  // it did not take the last lines
};

}  // namespace muster
