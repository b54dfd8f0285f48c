// A file that grows by appending, as its journal will speak of it: a hash for each step, so that a
// torn end is noticed, and one of the whole, which a run that goes on begins with what is there.

#include "jobs/growing_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"
#include "dataset/file_hash.h"
#include "dataset/own_file.h"

namespace muster {
namespace {

constexpr std::size_t kBufferMost = 256 * 1024;  // bytes gathered before a write

}  // namespace

Result<GrowingText> GrowingText::open(const std::filesystem::path& path, std::uint64_t size) {
  auto fd = MUSTER_TRY(open_own_file(path, O_WRONLY | O_CREAT));
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0 ||
      ::lseek(fd.get(), static_cast<off_t>(size), SEEK_SET) < 0) {
    return system_error(path.string(), "cut", errno);
  }
  Hash128 whole_hash;
  MUSTER_TRY(hash_bytes_of(path, 0, size, whole_hash));
  return GrowingText(path, std::move(fd), size, std::move(whole_hash));
}

GrowingText::GrowingText(std::filesystem::path path, UniqueFd fd, std::uint64_t size,
                         Hash128 whole_hash)
    : path_(std::move(path)), fd_(std::move(fd)), size_(size), whole_hash_(std::move(whole_hash)) {}

Status GrowingText::append(std::string_view text) {
  buffer_ += text;
  return buffer_.size() < kBufferMost ? Status(Done{}) : flush();
}

Status GrowingText::flush() {
  MUSTER_TRY(write_all(fd_.get(), buffer_, path_));
  hash_.update(buffer_);
  whole_hash_.update(buffer_);
  size_ += buffer_.size();
  buffer_.clear();
  return Done{};
}

Result<GrowingText::Mark> GrowingText::mark() {
  MUSTER_TRY(flush());
  return Mark{.size = size_, .hash = std::exchange(hash_, Hash128()).hex()};
}

Status GrowingText::make_durable() const {
  if (::fdatasync(fd_.get()) != 0) return system_error(path_.string(), "sync", errno);
  return Done{};
}

}  // namespace muster
