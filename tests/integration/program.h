#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace muster {

inline UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

/// True once the process has ended, within the time; a process that is gone already has ended.
inline bool ends_within(const UniqueFd& pidfd, int timeout_ms) {
  if (!pidfd.is_open()) return true;
  pollfd waiting{pidfd.get(), POLLIN, 0};
  return ::poll(&waiting, 1, timeout_ms) == 1;
}

/// A program of ours, running; its standard error goes to `log`.
class Program {
 public:
  Program(std::vector<std::string> arguments, const std::string& log) {
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
    EXPECT_EQ(::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0) << argv[0];
    posix_spawn_file_actions_destroy(&actions);
    pidfd_ = open_pidfd(pid_);
  }

  pid_t pid() const { return pid_; }
  const UniqueFd& pidfd() const { return pidfd_; }

  std::vector<pid_t> children() const {
    std::vector<pid_t> result;
    std::ifstream list("/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) +
                       "/children");
    for (pid_t child = 0; list >> child;) result.push_back(child);
    return result;
  }

  /// The exit code, or minus the signal.
  int wait() const {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  UniqueFd pidfd_;
};

}  // namespace muster
