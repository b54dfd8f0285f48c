// One run writes an output at a time: flock() on a file beside it, which the kernel frees when the
// process ends, however it ends. The file is removed at the end, and this makes the trap: a lock
// may be taken on a file whose name is already gone. Therefore the name is compared with the open
// file after locking, and a mismatch means another try.

#include "jobs/output_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "dataset/own_file.h"

namespace muster {
namespace {

// Each try that fails means that a run has ended meanwhile.
constexpr int kTriesMost = 100;

// A line with the id of a process, however short; what it says is looked at by people alone.
constexpr std::uint64_t kContentMost = 32;

// Nothing, or what `take` writes (a full disk may have cut it): a lock that an ended run has left.
bool is_of_a_lock(std::string_view content) {
  if (content.size() > 1 && content.ends_with('\n')) content.remove_suffix(1);
  return content.find_first_not_of("0123456789") == std::string_view::npos;
}

// Whoever named a file of theirs so keeps it: a lock is emptied, and removed at the end.
Status check_is_lock(int fd, const std::filesystem::path& path, std::string_view how) {
  const auto content = read_all(fd, kContentMost, path);
  if (content && is_of_a_lock(*content)) return Done{};
  if (!content && content.error().kind != ErrorKind::ResourceExhausted) return content.error();
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}: is there and no lock of muster's: remove it, or name another "
                           "output {}",
                           path.string(), how)};
}

// " (process 4711)" as the holder has written it; nothing where it has not, or is of a machine or a
// container whose processes are not seen here.
std::string holder_of(int fd, const std::filesystem::path& path) {
  const auto text = read_all(fd, kContentMost, path);
  pid_t pid = 0;
  if (!text) return "";
  std::from_chars(text->data(), text->data() + text->size(), pid);
  if (pid <= 0 || (::kill(pid, 0) != 0 && errno == ESRCH)) return "";
  return fmt::format(" (process {})", pid);
}

// The file may have been removed by the run that had it, and another may have made a new one.
bool is_still_there(int fd, const std::filesystem::path& path) {
  struct stat ours {};
  struct stat named {};
  return ::fstat(fd, &ours) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

}  // namespace

Result<OutputLock> OutputLock::take(const std::filesystem::path& path,
                                    const std::filesystem::path& out, std::string_view how) {
  for (int i = 0; i < kTriesMost; ++i) {
    auto fd = MUSTER_TRY(open_own_file(path, O_RDWR | O_CREAT));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return system_error(path.string(), "lock", errno);
      return Error{ErrorKind::Unavailable,
                   fmt::format("{}: another run is writing it{}: wait for its end, or name "
                               "another file {}",
                               out.string(), holder_of(fd.get(), path), how)};
    }
    if (!is_still_there(fd.get(), path)) continue;
    MUSTER_TRY(check_is_lock(fd.get(), path, how));
    // For people only; a full disk is no reason to stop here.
    const auto pid = fmt::format("{}\n", ::getpid());
    if (::ftruncate(fd.get(), 0) == 0 && ::lseek(fd.get(), 0, SEEK_SET) == 0) {
      (void)write_all(fd.get(), pid, path);
    }
    return OutputLock(std::move(fd), path);
  }
  return Error{ErrorKind::Unavailable,
               fmt::format("{}: other runs begin and end with it all the time", out.string())};
}

Status OutputLock::check_free(const std::filesystem::path& path, const std::filesystem::path& out) {
  const auto fd = open_own_file(path, O_RDONLY);
  if (!fd) return Done{};
  if (::flock(fd->get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return Done{};
  return Error{ErrorKind::Unavailable,
               fmt::format("{}: a run is still writing it{}: wait for its end", out.string(),
                           holder_of(fd->get(), path))};
}

OutputLock::OutputLock(UniqueFd fd, std::filesystem::path path)
    : fd_(std::move(fd)), path_(std::move(path)) {}

OutputLock::OutputLock(OutputLock&& other) noexcept
    : fd_(std::move(other.fd_)), path_(std::move(other.path_)) {}

// Removed while it is held: whoever waits for this very file sees that its name is gone.
OutputLock::~OutputLock() {
  if (fd_.is_open()) ::unlink(path_.c_str());
}

}  // namespace muster
