// Lines are views into one buffer, which is moved only when more bytes are needed: no line is
// copied. The buffer doubles for a long line, up to the limit; of a line beyond it the rest is
// passed over without being kept. Bytes that were searched for a line end are not searched again.

#include "dataset/line_splitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster {
namespace {

constexpr std::size_t kChunkSize = 256 * 1024;  // of one read; stays in the second-level cache
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
// Of a line that is too long: a device or a pipe without line ends would be read for ever. A second
// or so of reading.
constexpr std::uint64_t kSkippedMost = 1ULL << 30U;

}  // namespace

LineSplitter::LineSplitter(std::unique_ptr<ByteSource> source, std::uint64_t line_size_max)
    : source_(std::move(source)), line_size_max_(line_size_max), buffer_(kChunkSize + kPadding) {}

Result<bool> LineSplitter::next(Line& line) {
  if (is_skipping_) MUSTER_TRY(skip_rest());
  std::size_t searched = 0;  // bytes of the pending line known to hold no end
  for (;;) {
    const char* pending = buffer_.data() + begin_;
    const std::size_t size = end_ - begin_;
    const void* found =
        size > searched ? std::memchr(pending + searched, '\n', size - searched) : nullptr;
    if (found != nullptr) {
      take(static_cast<std::size_t>(static_cast<const char*>(found) - pending), true, line);
      return true;
    }
    if (is_source_done_) {
      if (size > 0) take(size, false, line);
      return size > 0;
    }
    searched = size;
    // One byte more than allowed for the "\r", three for the byte order mark.
    if (size > line_size_max_ + 1 + kByteOrderMark.size()) {
      take(size, false, line);
      is_skipping_ = true;
      return true;
    }
    MUSTER_TRY(fill());
  }
}

// What is left of a line that was told as too long.
Status LineSplitter::skip_rest() {
  std::uint64_t skipped = 0;
  for (;;) {
    const char* pending = buffer_.data() + begin_;
    const void* found = end_ > begin_ ? std::memchr(pending, '\n', end_ - begin_) : nullptr;
    is_skipping_ = found == nullptr && !is_source_done_;
    if (!is_skipping_) {
      begin_ = found == nullptr
                   ? end_
                   : static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data()) + 1;
      return Done{};
    }
    skipped += end_ - begin_;
    begin_ = end_;
    if (skipped > kSkippedMost) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("line {} has no end within {} bytes", number_, skipped)};
    }
    MUSTER_TRY(fill());
  }
}

// Reads some more bytes behind those that wait.
Status LineSplitter::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - kPadding == end_) {
    buffer_.resize(2 * end_ + kPadding);
  }
  const std::size_t room = std::min(buffer_.size() - kPadding - end_, std::max(kChunkSize, end_));
  auto count = source_->read(std::span(buffer_).subspan(end_, room));
  if (!count) {
    is_source_done_ = true;
    begin_ = end_ = 0;
    is_skipping_ = false;
    return count.error();
  }
  is_source_done_ = *count == 0;
  end_ += *count;
  read_size_ += *count;
  return Done{};
}

// Gives out the first `size` pending bytes as a line and passes over them and their end.
void LineSplitter::take(std::size_t size, bool has_end, Line& line) {
  std::string_view text(buffer_.data() + begin_, size);
  begin_ += size + (has_end ? 1 : 0);
  if (std::exchange(is_at_start_, false) && text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  if (has_end && text.ends_with('\r')) {
    text.remove_suffix(1);
  }
  line.is_too_long = text.size() > line_size_max_;
  line.text = line.is_too_long ? std::string_view() : text;
  line.number = ++number_;
}

}  // namespace muster
