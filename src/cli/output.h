#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

/// Standard output, where results go, in large pieces.
///
/// Threads: not thread-safe.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}

  /// Adds `text` and writes when enough has come together.
  ///
  /// Errors: those of writing; ResourceExhausted when the disk is full.
  Status append(std::string_view text);

  Status flush();

  /// The reader closed its end (`muster … | head`): no error to tell anybody about.
  bool is_reader_gone() const { return is_reader_gone_; }

 private:
  const int fd_;
  std::string buffer_;
  bool is_reader_gone_ = false;
};

}  // namespace muster
