// The measured command runs as a shell would run it: in a process group of its own, with the
// terminal and with default signals. What its processes used is read with wait4(), which counts the
// descendants that were waited for. Whether a process on a GPU belongs to the command is found by
// its chain of parents.

#include "cli/monitor_child.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/file.h"

namespace muster {
namespace {

constexpr int kSignalBase = 128;

// SIGTTOU would stop us for giving the terminal away or taking it back.
void give_terminal(pid_t group) {
  if (::isatty(STDIN_FILENO) == 0) return;
  const auto before = std::signal(SIGTTOU, SIG_IGN);
  ::tcsetpgrp(STDIN_FILENO, group);
  std::signal(SIGTTOU, before);
}

/// Source: proc(5), /proc/PID/stat: the fourth field, after a name in brackets that may hold any.
std::optional<pid_t> parent_of(pid_t pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
  const auto name_end = stat ? stat->rfind(')') : std::string::npos;
  int parent = 0;
  if (name_end == std::string::npos ||
      std::sscanf(stat->c_str() + name_end + 1, " %*c %d", &parent) != 1) {
    return std::nullopt;
  }
  return parent;
}

double seconds_of(const timeval& time) {
  constexpr double kMicro = 1e-6;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * kMicro;
}

ProcessUse use_of(const rusage& taken) {
  constexpr std::uint64_t kKib = 1024;
  // Linux counts in units of 512 bytes here, whatever the file system's blocks are.
  constexpr std::uint64_t kBlock = 512;
  return {.user_seconds = seconds_of(taken.ru_utime),
          .system_seconds = seconds_of(taken.ru_stime),
          .peak_memory_bytes = static_cast<std::uint64_t>(taken.ru_maxrss) * kKib,
          .read_bytes = static_cast<std::uint64_t>(taken.ru_inblock) * kBlock,
          .written_bytes = static_cast<std::uint64_t>(taken.ru_oublock) * kBlock};
}

}  // namespace

Result<ChildCommand> ChildCommand::start(std::vector<std::string> words) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  // As a shell would start it: nothing blocked, and the signals that we ignore as they are.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t pid = -1;
  const int failure =
      ::posix_spawnp(&pid, pointers[0], nullptr, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (failure != 0) return system_error(words.front(), "run", failure);
  give_terminal(pid);
  return ChildCommand(pid);
}

std::optional<int> ChildCommand::exit_code() {
  // Without waiting (WNOHANG): the caller asks after every wait, and goes on recording where the
  // command still runs.
  int status = 0;
  rusage taken{};
  if (::wait4(pid_, &status, WNOHANG, &taken) != pid_) return std::nullopt;
  use_ = use_of(taken);
  give_terminal(::getpgrp());
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
}

// To the whole group, as a terminal sends it: a shell that is measured has children of its own.
void ChildCommand::pass_on(int signal_number) const { ::kill(-pid_, signal_number); }

bool ChildCommand::has(std::uint32_t pid) const {
  constexpr int kDepthMax = 64;  // a chain of ancestors that is longer is no work of a command
  auto ancestor = std::optional(static_cast<pid_t>(pid));
  for (int depth = 0; ancestor && *ancestor > 1 && depth < kDepthMax; ++depth) {
    if (*ancestor == pid_) return true;
    ancestor = parent_of(*ancestor);
  }
  return false;
}

}  // namespace muster
