#include "dataset/line_splitter.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster {
namespace {

constexpr std::size_t kChunkSize = 256 * 1024;  // of one read; stays in the second-level cache
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

LineSplitter::LineSplitter(std::unique_ptr<ByteSource> source, std::uint64_t line_size_max)
    : source_(std::move(source)), line_size_max_(line_size_max), buffer_(kChunkSize + kPadding) {}

Result<bool> LineSplitter::next(Line& line) {
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
      const bool is_line = size > 0 || is_dropping_;
      if (is_line) take(size, false, line);
      return is_line;
    }
    searched = size;
    // One byte more than allowed for the "\r", three for the byte order mark.
    if (is_dropping_ || size > line_size_max_ + 1 + kByteOrderMark.size()) {
      is_dropping_ = true;
      begin_ = end_;
      searched = 0;
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
    is_dropping_ = false;
    return count.error();
  }
  is_source_done_ = *count == 0;
  end_ += *count;
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
  line.is_too_long = std::exchange(is_dropping_, false) || text.size() > line_size_max_;
  line.text = line.is_too_long ? std::string_view() : text;
  line.number = ++number_;
}

}  // namespace muster
