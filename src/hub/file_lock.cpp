// flock on a file that is never removed by us, the protocol of huggingface_hub: both may share one
// cache. Waiting is a loop of attempts, so that a pull can be cancelled and say what it waits for.
// After each success the name is compared with the open file: if somebody cleaned the folder up in
// between, the lock is on a file that nobody else will find, and is taken again.

#include "hub/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

namespace muster {
namespace {

// Group members may wait for it too. Source: huggingface_hub 2.x, utils/_fixes.py, `WeakFileLock`.
constexpr mode_t kMode = 0664;
constexpr auto kLookInterval = std::chrono::milliseconds(100);

// One attempt; nullopt when another process has it.
Result<std::optional<UniqueFd>> try_lock(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, kMode));
  if (!fd.is_open()) return system_error(path.string(), "open the lock", errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK || errno == EACCES || errno == EINTR) return std::optional<UniqueFd>();
    if (errno == ENOSYS || errno == ENOTSUP || errno == ENOLCK) {
      return Error{ErrorKind::Unsupported,
                   fmt::format("{}: this file system has no locks", path.string())};
    }
    return system_error(path.string(), "lock", errno);
  }
  // Somebody may have cleaned the folder up between the two calls: then nobody else sees this lock.
  struct stat held {};
  struct stat named {};
  const bool is_named = ::fstat(fd.get(), &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
                        held.st_ino == named.st_ino && held.st_dev == named.st_dev;
  return is_named ? std::optional(std::move(fd)) : std::optional<UniqueFd>();
}

}  // namespace

Result<FileLock> FileLock::take(const std::filesystem::path& path, const std::string& what,
                                const PullEvents& events) {
  bool has_said = false;
  while (true) {
    auto fd = MUSTER_TRY(try_lock(path));
    if (fd) return FileLock(*std::move(fd));
    if (!std::exchange(has_said, true)) {
      events.on_notice(fmt::format("{}: another process fetches it; waiting", what));
    }
    events.wait(kLookInterval);
    if (events.is_cancelled()) return Error{ErrorKind::Cancelled, "interrupted"};
  }
}

}  // namespace muster
