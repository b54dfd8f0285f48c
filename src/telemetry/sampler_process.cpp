// Starts and buries one sampler. The program is kept open as a descriptor, so a restart runs the
// same build even after an update of the files. Signals are unblocked in the child and it gets
// its own process group, so that a Ctrl-C in the terminal reaches the parent only.

#include "telemetry/sampler_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "base/build_info.h"
#include "base/child_process.h"
#include "base/text.h"
#include "telemetry/sampler.h"

namespace muster {
namespace {

Result<pid_t> spawn(const SamplerProgram& program, const ChildPipes& pipes, const CallPage& page,
                    const SampleRing& ring) {
  const auto child_program = MUSTER_TRY(copy_above(kSamplerRing, program.file.get(), "sampler"));
  const auto child_socket =
      MUSTER_TRY(copy_above(kSamplerRing, pipes.socket_there.get(), "sampler"));
  const auto child_page = MUSTER_TRY(copy_above(kSamplerRing, page.fd(), "sampler"));
  const auto child_ring = MUSTER_TRY(copy_above(kSamplerRing, ring.fd(), "sampler"));
  const auto child_stderr =
      MUSTER_TRY(copy_above(kSamplerRing, pipes.stderr_write.get(), "sampler"));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, child_stderr.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_stderr.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_socket.get(), kSamplerSocket);
  posix_spawn_file_actions_adddup2(&actions, child_page.get(), kSamplerPage);
  posix_spawn_file_actions_adddup2(&actions, child_ring.get(), kSamplerRing);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  // The collector's thread blocks all signals; a child inherits that.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);

  std::array<std::string, 3> words{"muster-sampler", kSamplerFlag, std::string(build_name())};
  std::array<char*, 4> pointers{words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t pid = -1;
  const auto file = fmt::format("/proc/self/fd/{}", child_program.get());
  const int failure =
      ::posix_spawn(&pid, file.c_str(), &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return system_error(program.path.string(), "start the sampler", failure);
  return pid;
}

bool has_ended(const UniqueFd& pidfd, int limit_ms) {
  pollfd ending{pidfd.get(), POLLIN, 0};
  return ::poll(&ending, 1, limit_ms) == 1;
}

}  // namespace

Result<SamplerProgram> SamplerProgram::open(std::filesystem::path path) {
  if (path.empty()) path = program_beside("muster-sampler");
  UniqueFd file(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!file.is_open()) return system_error(path.string(), "find the sampler", errno);
  return SamplerProgram{std::move(path), std::move(file)};
}

Result<std::unique_ptr<SamplerProcess>> SamplerProcess::start(const SamplerProgram& program,
                                                              const CallPage& page,
                                                              const SampleRing& ring) {
  auto pipes = MUSTER_TRY(open_child_pipes("sampler"));
  const auto pid = MUSTER_TRY(spawn(program, pipes, page, ring));
  return std::unique_ptr<SamplerProcess>(
      new SamplerProcess(pid, std::move(pipes.socket_here), std::move(pipes.stderr_read)));
}

SamplerProcess::SamplerProcess(pid_t pid, UniqueFd socket, UniqueFd stderr_pipe)
    : pid_(pid),
      pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
      channel_(std::move(socket)),
      stderr_(std::move(stderr_pipe)) {}

SamplerProcess::~SamplerProcess() {
  if (is_reaped_) return;
  kill_process(pidfd_);
  reap();
}

void SamplerProcess::read_stderr() {
  for (auto text = read_child_output(stderr_); !text.empty(); text = read_child_output(stderr_)) {
    keep_child_output(stderr_tail_, text);
  }
}

std::string SamplerProcess::last_words() const {
  const auto text = trim(stderr_tail_);
  return std::string(trim(text.substr(text.rfind('\n') + 1)));
}

SamplerDeath SamplerProcess::reap() {
  is_reaped_ = true;  // or left to the system
  // A process that hangs in the kernel closes its socket long before it can be waited for; one that
  // closes its socket and lives on is of no use any more.
  constexpr int kEndMs = 100;
  // A killed one is gone in milliseconds, unless a call holds it in the kernel: maybe for ever.
  constexpr int kKillMs = 1000;
  bool is_over = has_ended(pidfd_, kEndMs);
  if (!is_over) {
    kill_process(pidfd_);
    is_over = has_ended(pidfd_, kKillMs);
  }
  int status = 0;
  if (!is_over || ::waitpid(pid_, &status, WNOHANG) != pid_) {
    return {"no end after a kill: a call into a driver holds it", true};
  }
  if (WIFEXITED(status)) {
    return {fmt::format("exit code {}", WEXITSTATUS(status)), WEXITSTATUS(status) != 0};
  }
  const int number = WTERMSIG(status);
  return {fmt::format("signal {} ({})", number, ::strsignal(number)), is_fault_signal(number)};
}

}  // namespace muster
