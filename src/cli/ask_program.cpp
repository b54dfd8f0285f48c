// Runs a program that is not ours and may hang: one deadline holds for its answer and for its end,
// and what it prints is bounded. Its standard error goes nowhere, because the answer alone is asked
// for. A program may close its output and live on, so its end is waited for by a pidfd, which
// poll() can wait for with a time limit, as waitpid() cannot.

#include "cli/ask_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "base/unique_fd.h"

extern char** environ;

namespace muster {
namespace {

constexpr std::size_t kAnswerSizeMax = 64 << 10;

Result<pid_t> spawn(const std::vector<std::string>& command, int out) {
  std::vector<char*> words;
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // A program that asks a question must get end-of-file and not take the person's input.
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int code = posix_spawnp(&pid, words.front(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return system_error(command.front(), "run", code);
  return pid;
}

// The time left, for poll().
int milliseconds_until(TimePoint deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

// Whether the process ends in time; it is not reaped.
bool ends_by(pid_t pid, TimePoint deadline) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process.is_open()) return false;
  pollfd waiting{.fd = process.get(), .events = POLLIN, .revents = 0};
  int ready = -1;
  do {
    ready = poll(&waiting, 1, milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// Everything up to end-of-file.
// Its pieces come when the program writes them, so the deadline is looked at before each one.
Result<std::string> read_until(int fd, const std::string& name, TimePoint deadline) {
  std::string answer;
  for (;;) {
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, milliseconds_until(deadline));
    if (ready == 0) {
      return Error{ErrorKind::DeadlineExceeded, fmt::format("{} did not answer in time", name)};
    }
    std::array<char, 4096> buffer{};
    const auto count = ready < 0 ? ready : read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(name, "read its answer", errno);
    if (count == 0) return answer;
    answer.append(buffer.data(), static_cast<std::size_t>(count));
    if (answer.size() > kAnswerSizeMax) {
      return Error{ErrorKind::ResourceExhausted, fmt::format("{} printed too much", name)};
    }
  }
}

}  // namespace

Result<std::string> ask_program(const std::vector<std::string>& command, Duration time) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return system_error(command.front(), "run", errno);
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const auto pid = MUSTER_TRY(spawn(command, out.get()));
  // Our copy of the writing end: with it open, end-of-file would never come.
  out.reset();

  const auto deadline = std::chrono::steady_clock::now() + time;
  auto answer = read_until(in.get(), command.front(), deadline);
  if (!answer || !ends_by(pid, deadline)) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (answer && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("{} answered with an error: {}", command.front(),
                             WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                               : fmt::format("signal {}", WTERMSIG(status)))};
  }
  return answer;
}

}  // namespace muster
