#include "cli/output.h"

#include "base/file.h"

namespace muster {
namespace {

constexpr std::size_t kPieceSize = 1 << 16;  // what a pipe holds: larger pieces only wait

}  // namespace

Status Output::append(std::string_view text) {
  buffer_ += text;
  return buffer_.size() >= kPieceSize ? flush() : Status(Done{});
}

Status Output::flush() {
  auto written = write_all(fd_, buffer_, "standard output");
  buffer_.clear();
  // A broken pipe is the only way in which a write to a file or pipe becomes Unavailable.
  if (!written && written.error().kind == ErrorKind::Unavailable) is_reader_gone_ = true;
  return written;
}

}  // namespace muster
