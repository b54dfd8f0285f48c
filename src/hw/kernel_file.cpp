// Opening a file walks its path each time, so files stay open and are read anew from offset 0. A
// failed read closes the file: a device that went away and came back is another file behind the
// same path. Every read is announced to a watch first, since a read can hang in a driver, and the
// watch is what names the call that did not return.

#include "hw/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>

#include "base/file.h"
#include "base/text.h"

namespace muster {
namespace {

constexpr std::size_t kPiece = 4096;
// With less room than this the kernel would give what is left in crumbs.
constexpr std::size_t kPieceLeast = 1024;

}  // namespace

std::int32_t KernelFile::read(CallWatch& watch, DeviceSample& sample) {
  const TimePoint begin = std::chrono::steady_clock::now();
  watch.enter(call_, begin);
  const auto code = read_all();
  const auto took = std::chrono::steady_clock::now() - begin;
  watch.leave(call_, code, took);
  ++sample.call_count;
  sample.call_seconds += seconds(took);
  return code;
}

std::int32_t KernelFile::read_all() {
  size_ = 0;
  if (!file_.is_open()) {
    file_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_.is_open()) return errno;
  }
  // The first piece holds most files; the kernel goes on where a piece ended.
  for (;;) {
    if (buffer_.size() < size_ + kPieceLeast) buffer_.resize(std::max(2 * size_, kPiece));
    const auto piece = buffer_.size() - size_;
    const auto count =
        ::pread(file_.get(), buffer_.data() + size_, piece, static_cast<off_t>(size_));
    if (count < 0) {
      const auto code = errno;
      if (code == EINTR) continue;
      size_ = 0;
      file_.reset();
      return code;
    }
    size_ += static_cast<std::size_t>(count);
    if (size_ > size_max_) break;
    // Attributes of sysfs fit one piece and give it whole; a larger file may come in short pieces.
    const bool is_short = static_cast<std::size_t>(count) < piece;
    if (count == 0 || (size_max_ <= kPiece && is_short)) return 0;
  }
  size_ = 0;
  return EFBIG;
}

bool is_not_offered(std::int32_t code) {
  return code == ENOENT || code == EOPNOTSUPP || code == EINVAL || code == ENODEV ||
         code == ENODATA;
}

std::optional<std::int64_t> leading_number(std::string_view text) {
  text = trim(text);
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::uint64_t> hex_number(std::string_view text) {
  text = trim(text);
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, 16);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(value) : std::nullopt;
}

std::optional<std::string> small_text(const std::filesystem::path& path) {
  constexpr std::uint64_t kSizeMax = 64 << 10;
  const auto text = read_file(path, kSizeMax);
  if (!text) return std::nullopt;
  std::string trimmed(trim(*text));
  return trimmed.empty() ? std::nullopt : std::optional(std::move(trimmed));
}

}  // namespace muster
