#include "cli/process_signal.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace muster {

Status send_signal(std::uint32_t pid, const std::string& command, int signal_number) {
  // Held open, the descriptor stays with this process whatever becomes of its number.
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0U)));
  const auto subject = fmt::format("process {}", pid);
  if (process.get() < 0) return system_error(subject, "signal it", errno);
  const auto folder = fmt::format("/proc/{}", pid);
  const auto name = read_file(folder + "/comm");
  if (!name || trim(*name) != trim(command)) {
    return Error{ErrorKind::NotFound, fmt::format("process {} is no longer {}", pid, command)};
  }
  struct stat owner {};
  if (stat(folder.c_str(), &owner) != 0 || owner.st_uid != geteuid()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("process {} is somebody else's: {}", pid, command)};
  }
  if (syscall(SYS_pidfd_send_signal, process.get(), signal_number, nullptr, 0U) != 0) {
    return system_error(subject, "signal it", errno);
  }
  return Done{};
}

}  // namespace muster
