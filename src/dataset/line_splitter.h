#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dataset/byte_source.h"

namespace muster {

/// One line of an input.
struct Line {
  std::string_view text;     // without its end; valid until the next call
  std::uint64_t number = 0;  // 1-based
  bool is_too_long = false;  // then `text` is empty
};

/// Cuts a stream of bytes into lines. "\n" and "\r\n" end a line, the last one needs no end; a
/// UTF-8 byte order mark at the start is skipped. Memory is bounded by the longest line that is
/// allowed.
///
/// Threads: not thread-safe.
class LineSplitter {
 public:
  /// Bytes that may be read behind `Line::text`, whatever they hold: simdjson asks for this many.
  static constexpr std::size_t kPadding = 64;

  LineSplitter(std::unique_ptr<ByteSource> source, std::uint64_t line_size_max);

  /// The next line into `line`; false at the end. A line that is too long is told as soon as that
  /// is known, and the rest of it passed over by the next call.
  ///
  /// Errors: those of the source; InvalidArgument for a rest of over 1 GiB.
  Result<bool> next(Line& line);

  /// Of the source, for the lines that were given: what waits in the buffer does not count.
  std::uint64_t size_consumed() const {
    return consumed_share(source_->size_consumed(), read_size_, read_size_ - (end_ - begin_));
  }

 private:
  Status fill();
  Status skip_rest();
  void take(std::size_t size, bool has_end, Line& line);

  std::unique_ptr<ByteSource> source_;
  std::uint64_t line_size_max_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // buffer_[begin_, end_) is read and not yet given out
  std::size_t end_ = 0;
  std::uint64_t read_size_ = 0;  // of all that the source gave
  std::uint64_t number_ = 0;     // of the line given last
  bool is_at_start_ = true;      // no line was given yet: a byte order mark may stand here
  bool is_source_done_ = false;
  bool is_skipping_ = false;  // inside a line that is too long, which was told
};

}  // namespace muster
