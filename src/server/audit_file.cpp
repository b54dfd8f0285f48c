// What can befall a file of lines: it is renamed away, the disk is full, nobody reads the pipe, or
// it holds something else.

#include "server/audit_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace muster {

// It stays non-blocking: a pipe without a reader must not hold up the start, nor a full one the
// end. For files O_NONBLOCK means nothing.
Status AuditFile::open() {
  MUSTER_TRY(check_content());
  UniqueFd fd(::open(path_.c_str(),
                     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
  if (!fd.is_open()) {
    if (errno == ENXIO) {
      return Error{ErrorKind::Unavailable,
                   fmt::format("{}: nobody reads this pipe", path_.string())};
    }
    return system_error(path_.string(), "open", errno);
  }
  fd_ = std::move(fd);
  is_torn_ = false;
  return Done{};
}

// A file of something else, such as the keys, must not get lines of the log.
Status AuditFile::check_content() const {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path_, ignored)) return Done{};
  const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  char first = '{';
  if (!fd.is_open() || ::pread(fd.get(), &first, 1, 0) < 1) return Done{};
  // A line break ends a line that a full disk has cut.
  if (first == '{' || first == '\n') return Done{};
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} is there and holds no lines of JSON to go on with; another name "
                           "is needed",
                           path_.string())};
}

Status AuditFile::write(std::string_view lines, std::size_t& written,
                        const std::function<bool()>& may_wait) {
  written = 0;
  const bool is_new = is_moved();
  if (is_new || is_broken_) {
    const bool is_torn = is_torn_ && !is_new;
    if (const auto opened = open(); !opened && !fd_.is_open()) return opened.error();
    is_torn_ = is_torn;
    is_broken_ = false;
  }
  if (is_torn_) {
    // A disk that was full cut a line; whatever comes begins a new one.
    if (const auto ended = ::write(fd_.get(), "\n", 1); ended != 1) return failed(errno);
    is_torn_ = false;
  }
  while (written < lines.size()) {
    const auto count = ::write(fd_.get(), lines.data() + written, lines.size() - written);
    if (count < 0 && (errno == EINTR || (errno == EAGAIN && wait_for_reader(may_wait)))) continue;
    if (count < 0) {
      const int why = errno;
      is_torn_ = written > 0 && lines[written - 1] != '\n';
      return failed(why);
    }
    written += static_cast<std::size_t>(count);
  }
  return Done{};
}

Error AuditFile::failed(int why) {
  is_broken_ = true;
  return system_error(path_.string(), "write", why);
}

bool AuditFile::wait_for_reader(const std::function<bool()>& may_wait) const {
  constexpr int kLookMs = 20;  // how soon it notices that it may wait no longer
  while (may_wait()) {
    pollfd waited{fd_.get(), POLLOUT, 0};
    if (::poll(&waited, 1, kLookMs) > 0) return true;
  }
  errno = EAGAIN;
  return false;
}

// Compares inodes, not names: after a rotation the descriptor still leads to the old file. It
// costs two system calls for each batch of lines, not for each line.
bool AuditFile::is_moved() const {
  struct stat here {};
  struct stat there {};
  return ::fstat(fd_.get(), &here) != 0 || ::stat(path_.c_str(), &there) != 0 ||
         here.st_ino != there.st_ino || here.st_dev != there.st_dev;
}

}  // namespace muster
