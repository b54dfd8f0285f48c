// The client runs as a child process with its words as separate arguments, so that no shell can
// read a model's name as a command. Quick questions have a deadline and a bound on what they print;
// commands that a person waits for (pulling an image, following a log) have no deadline, and their
// standard error is that of this program.

#include "containers/docker_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/text.h"
#include "base/unique_fd.h"

extern char** environ;

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kOutputSizeMax = 1 << 20;        // of `docker ps`: thousands of containers
constexpr auto kAnswerTime = std::chrono::minutes(1);  // a daemon that starts on demand

struct Pipe {
  UniqueFd in;
  UniqueFd out;
};

Result<Pipe> open_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("docker", "run", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// out, error: where the program writes; -1: where this one does.
Result<pid_t> spawn(const std::string& program, const std::vector<std::string>& words, int out,
                    int error) {
  std::vector<char*> pointers{const_cast<char*>("docker")};
  for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  if (error >= 0) posix_spawn_file_actions_adddup2(&actions, error, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // This program ignores SIGPIPE; that one must end when the reader of its log leaves.
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int code =
      posix_spawn(&pid, program.c_str(), &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return system_error(program, "run", code);
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// For poll(): -1 without a deadline.
int milliseconds_until(std::optional<TimePoint> deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      *deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

struct Stream {
  UniqueFd fd;
  std::string text = {};
};

// Reads one piece; closes the stream at its end.
Status read_piece(Stream& stream) {
  std::array<char, 4096> buffer{};
  const auto count = read(stream.fd.get(), buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return Done{};
  if (count < 0) return system_error("docker", "read its answer", errno);
  if (count == 0) stream.fd.reset();
  stream.text.append(buffer.data(), static_cast<std::size_t>(count));
  if (stream.text.size() > kOutputSizeMax) {
    return Error{ErrorKind::ResourceExhausted, "docker printed too much"};
  }
  return Done{};
}

// Reads all streams to their ends.
// All pipes are read at once: a child that fills the one while the other is waited for would block
// for ever.
Status drain(std::vector<Stream*> streams, std::optional<TimePoint> deadline) {
  for (;;) {
    std::vector<pollfd> waiting;
    for (const auto* stream : streams) {
      if (stream->fd.is_open()) {
        waiting.push_back({.fd = stream->fd.get(), .events = POLLIN, .revents = 0});
      }
    }
    if (waiting.empty()) return Done{};
    const int ready = poll(waiting.data(), waiting.size(), milliseconds_until(deadline));
    if (ready == 0) {
      return Error{ErrorKind::DeadlineExceeded, "docker did not answer within a minute"};
    }
    if (ready < 0 && errno != EINTR) return system_error("docker", "wait for its answer", errno);
    for (auto* stream : streams) {
      const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const pollfd& entry) {
        return entry.fd == stream->fd.get() && entry.revents != 0;
      });
      if (ready > 0 && found != waiting.end()) MUSTER_TRY(read_piece(*stream));
    }
  }
}

// The client's last line says what is wrong: "… Is the docker daemon running?".
Error failure(int exit_code, const std::string& errors) {
  const auto text = trim(errors);
  const auto line = trim(text.substr(text.rfind('\n') + 1));
  return Error{ErrorKind::Unavailable,
               line.empty() ? fmt::format("docker ended with exit code {}", exit_code)
                            : fmt::format("docker says: {}", line)};
}

}  // namespace

Result<DockerClient> DockerClient::find() {
  const char* path = std::getenv("PATH");
  for (const auto& folder : split(path == nullptr ? "" : path, ':')) {
    const auto program = fs::path(folder.empty() ? "." : folder) / "docker";
    std::error_code ignored;
    if (fs::is_regular_file(program, ignored) && access(program.c_str(), X_OK) == 0) {
      return DockerClient(program.string());
    }
  }
  return Error{ErrorKind::NotFound,
               "no docker client on the PATH; install one (Debian: docker-cli, Docker's own: "
               "docker-ce-cli), or let --dry-run print the command for another machine"};
}

Result<std::string> DockerClient::ask(const std::vector<std::string>& words) const {
  auto out = MUSTER_TRY(open_pipe());
  auto error = MUSTER_TRY(open_pipe());
  const auto pid = MUSTER_TRY(spawn(program_, words, out.out.get(), error.out.get()));
  // The child holds its own copies of the writing ends. Ours must be closed, or the pipes never
  // end.
  out.out.reset();
  error.out.reset();
  Stream output{std::move(out.in)};
  Stream errors{std::move(error.in)};
  const auto drained = drain({&output, &errors}, std::chrono::steady_clock::now() + kAnswerTime);
  if (!drained) kill(pid, SIGKILL);
  const int code = wait_for(pid);
  if (!drained) return drained.error();
  if (code != 0) return failure(code, errors.text);
  return std::move(output.text);
}

Result<DockerClient::Outcome> DockerClient::run(const std::vector<std::string>& words,
                                                bool keeps_output) const {
  Outcome outcome;
  if (!keeps_output) {
    outcome.exit_code = wait_for(MUSTER_TRY(spawn(program_, words, -1, -1)));
    return outcome;
  }
  auto out = MUSTER_TRY(open_pipe());
  const auto pid = MUSTER_TRY(spawn(program_, words, out.out.get(), -1));
  out.out.reset();
  Stream output{std::move(out.in)};
  const auto drained = drain({&output}, std::nullopt);
  if (!drained) kill(pid, SIGKILL);
  outcome.exit_code = wait_for(pid);
  if (!drained) return drained.error();
  outcome.out = std::move(output.text);
  return outcome;
}

}  // namespace muster
