#include "dataset/own_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace muster {

Result<UniqueFd> open_own_file(const std::filesystem::path& path, int flags) {
  // A pipe that nobody reads or writes keeps nobody waiting.
  UniqueFd fd(::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644));
  if (fd.is_open()) return fd;
  const int number = errno;
  std::error_code ignored;
  if (std::filesystem::is_symlink(path, ignored)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: a link, and nothing is written through one here: remove it, or "
                             "name another output with -o",
                             path.string())};
  }
  return system_error(path.string(), (flags & O_CREAT) != 0 ? "create" : "open", number);
}

}  // namespace muster
