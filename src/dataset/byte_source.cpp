// Bytes of an input, whatever it is: a file, a pipe, standard input, packed or not. What kind of
// stream it is shows in its first bytes and not in its name, so they are read, looked at and put
// back in front; a pipe, which cannot be read twice, is treated as a file is.

#include "dataset/byte_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/unique_fd.h"
#include "dataset/compressed_source.h"

namespace muster {
namespace {

constexpr int kLookMs = 100;

class FileSource final : public ByteSource {
 public:
  FileSource(UniqueFd owned, int fd, bool may_be_silent, std::string name,
             std::function<bool()> is_interrupted)
      : owned_(std::move(owned)),
        fd_(fd),
        may_be_silent_(may_be_silent),
        name_(std::move(name)),
        is_interrupted_(std::move(is_interrupted)) {}

  Result<std::size_t> read(std::span<char> buffer) override {
    if (may_be_silent_) MUSTER_TRY(wait_for_data());
    for (;;) {
      const ssize_t count = ::read(fd_, buffer.data(), buffer.size());
      if (count >= 0) {
        size_consumed_ += static_cast<std::uint64_t>(count);
        return static_cast<std::size_t>(count);
      }
      if (errno != EINTR) {
        return system_error(name_, "read", errno);
      }
    }
  }

  std::uint64_t size_consumed() const override { return size_consumed_; }

 private:
  // Standard input and a pipe may be silent for ever; poll() ends with a signal, which read() does
  // not. A signal that comes just before poll() does not end it: so it is asked for, too.
  Status wait_for_data() const {
    pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
    const int wait_ms = is_interrupted_ ? kLookMs : -1;
    while (!is_interrupted_ || !is_interrupted_()) {
      const int ready = ::poll(&waiting, 1, wait_ms);
      const bool was_signal = ready < 0 && errno == EINTR;
      if (was_signal && !is_interrupted_) break;
      if (ready != 0 && !was_signal) return Done{};
    }
    return Error{ErrorKind::Cancelled, name_ + ": interrupted"};
  }

  UniqueFd owned_;  // closed for standard input, which is not ours
  int fd_;
  bool may_be_silent_;
  std::string name_;
  std::function<bool()> is_interrupted_;
  std::uint64_t size_consumed_ = 0;
};

// Gives back the bytes that were taken to see what a stream is.
class HeadedSource final : public ByteSource {
 public:
  HeadedSource(std::string head, std::unique_ptr<ByteSource> rest)
      : head_(std::move(head)), rest_(std::move(rest)) {}

  Result<std::size_t> read(std::span<char> buffer) override {
    if (head_.empty()) {
      return rest_->read(buffer);
    }
    const std::size_t count = std::min(buffer.size(), head_.size());
    std::copy_n(head_.data(), count, buffer.data());
    head_.erase(0, count);
    return count;
  }

  // What is put back counts as consumed: of a compressed file nobody knows how much of it that is.
  std::uint64_t size_consumed() const override { return rest_->size_consumed(); }

 private:
  std::string head_;
  std::unique_ptr<ByteSource> rest_;
};

}  // namespace

std::string input_name(const std::string& input) { return input == "-" ? "standard input" : input; }

Result<std::unique_ptr<ByteSource>> open_raw_source(const std::string& input,
                                                    std::function<bool()> is_interrupted) {
  if (input == "-") {
    return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(
        UniqueFd(), STDIN_FILENO, true, input_name(input), std::move(is_interrupted)));
  }
  struct stat info {};
  const bool is_pipe = ::stat(input.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
  // Opening a pipe that nobody writes would wait, and no signal would end that.
  UniqueFd fd(::open(input.c_str(), O_RDONLY | O_CLOEXEC | (is_pipe ? O_NONBLOCK : 0)));
  if (!fd.is_open()) return system_error(input, "open", errno);
  const int number = fd.get();
  if (is_pipe && ::fcntl(number, F_SETFL, 0) != 0) return system_error(input, "open", errno);
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(
      std::move(fd), number, is_pipe, input, std::move(is_interrupted)));
}

std::unique_ptr<ByteSource> with_head(std::string head, std::unique_ptr<ByteSource> rest) {
  return std::make_unique<HeadedSource>(std::move(head), std::move(rest));
}

Result<std::unique_ptr<ByteSource>> decode_source(std::unique_ptr<ByteSource> raw,
                                                  const std::string& input) {
  std::string head(kMagicSize, '\0');
  std::size_t size = 0;
  while (wants_more_magic(std::string_view(head).substr(0, size))) {
    const auto count = MUSTER_TRY(raw->read(std::span(head).subspan(size)));
    if (count == 0) break;
    size += count;
  }
  head.resize(size);
  MUSTER_TRY(check_readable(head, input));
  const Compression compression = compression_of(head);
  auto whole = with_head(std::move(head), std::move(raw));
  switch (compression) {
    case Compression::Gzip:
      return make_gzip_source(std::move(whole), input_name(input));
    case Compression::Zstd:
      return make_zstd_source(std::move(whole), input_name(input));
    case Compression::None:
      break;
  }
  return whole;
}

}  // namespace muster
