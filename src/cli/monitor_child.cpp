// The measured command runs as a shell would run it: in a process group of its own, with the
// terminal and with default signals. What its processes used is read with wait4(), which counts the
// descendants that were waited for. Whether a process on a GPU belongs to the command is found by
// its chain of parents.

#include "cli/monitor_child.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/cpu_time.h"
#include "hw/cpu/process_reader.h"

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

ProcessUse use_of(const rusage& taken) {
  constexpr std::uint64_t kKib = 1024;
  // Linux counts in units of 512 bytes here, whatever the file system's blocks are.
  constexpr std::uint64_t kBlock = 512;
  return {.user_seconds = cpu_seconds(taken.ru_utime),
          .system_seconds = cpu_seconds(taken.ru_stime),
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
  for (int depth = 0; pid > 1 && depth < kDepthMax; ++depth) {
    if (pid == static_cast<std::uint32_t>(pid_)) return true;
    const auto stat = read_process_stat(pid);
    if (!stat) return false;
    pid = stat->parent_pid;
  }
  return false;
}

}  // namespace muster
