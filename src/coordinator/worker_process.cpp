// A worker is a process of its own, so that a crash of a driver costs one device. It is watched
// through a pidfd, which cannot come to mean another process. Its output goes into one pipe that is
// read without blocking; the tail is kept for the reason of a death. The kernel's count of
// out-of-memory kills separates its SIGKILL from one that came from outside.

#include "coordinator/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/child_process.h"
#include "base/cpu_time.h"
#include "base/file.h"
#include "base/text.h"
#include "spec/standin_device.h"
#include "spec/worker_arguments.h"

namespace muster {
namespace {

constexpr std::size_t kLineSizeMax = 4096;  // bytes; a longer line is told in pieces
constexpr int kWorkerSocket = 3;
constexpr int kWorkerLiveness = 4;
// A process that is killed is gone in milliseconds, unless a call holds it in the kernel.
constexpr Duration kEndAllowance = std::chrono::seconds(1);
// For one that dies to free its memory: 160 GiB by what base/liveness_pipe.h has measured.
constexpr Duration kFreeingAllowance = std::chrono::seconds(10);

/// What waitpid will tell of a process, as far as its /proc/PID/stat shows it: from the moment that
/// a signal or an exit takes it. 0: nothing is known; of one that is stopped it tells the signal.
/// Source: Linux, fs/proc/array.c, do_task_stat, field 52 (the group's code since 5.17).
int early_status(pid_t pid) {
  constexpr int kState = 3;
  constexpr int kExitCode = 52;
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
  const auto name_end = stat ? stat->rfind(") ") : std::string::npos;
  if (name_end == std::string::npos) return 0;
  const auto fields = split(std::string_view(*stat).substr(name_end + 2), ' ');
  if (fields.size() <= kExitCode - kState) return 0;
  int status = 0;
  const auto code = trim(fields[kExitCode - kState]);
  std::from_chars(code.data(), code.data() + code.size(), status);
  return status;
}

/// Processes that the kernel has killed for want of memory since boot; 0 where it does not say.
/// Source: Linux, Documentation/filesystems/proc.rst, /proc/vmstat `oom_kill` (since 4.13).
std::uint64_t count_oom_kills() {
  const auto vmstat = read_file("/proc/vmstat");
  constexpr std::string_view kName = "\noom_kill ";
  const auto at = vmstat ? vmstat->find(kName) : std::string::npos;
  if (at == std::string::npos) return 0;
  std::uint64_t count = 0;
  std::from_chars(vmstat->data() + at + kName.size(), vmstat->data() + vmstat->size(), count);
  return count;
}

bool starts_with_name(const std::string& entry, const std::string& setting) {
  return entry.compare(0, setting.find('=') + 1, setting, 0, setting.find('=') + 1) == 0;
}

std::vector<std::string> worker_environment(const WorkerProcess::Options& options) {
  std::vector<std::string> settings{
      // Lanes are single-threaded; libgomp reads this once, before main.
      "OMP_NUM_THREADS=1",
  };
  if (!options.torch_root.empty()) {
    const char* inherited = std::getenv("LD_LIBRARY_PATH");
    settings.push_back(fmt::format("LD_LIBRARY_PATH={}{}{}", (options.torch_root / "lib").string(),
                                   inherited != nullptr ? ":" : "",
                                   inherited != nullptr ? inherited : ""));
  }
  const auto of_device = variables_of(options.device);
  settings.insert(settings.end(), of_device.begin(), of_device.end());
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string inherited = *entry;
    bool is_replaced = false;
    for (const auto& setting : settings) is_replaced |= starts_with_name(inherited, setting);
    if (!is_replaced) environment.push_back(inherited);
  }
  environment.insert(environment.end(), settings.begin(), settings.end());
  return environment;
}

bool has_ended(const UniqueFd& pidfd, Duration limit) {
  pollfd ending{pidfd.get(), POLLIN, 0};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(Duration{0}, limit));
  return ::poll(&ending, 1, static_cast<int>(ms.count())) == 1;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// posix_spawn, not fork: the parent may hold gigabytes and many threads. The blank argument is room
// in which the worker writes the models it holds, for tools that list processes.
Result<pid_t> spawn(const WorkerProcess::Options& options, const ChildPipes& pipes,
                    int liveness_pipe) {
  const auto socket = MUSTER_TRY(copy_above(kWorkerLiveness, pipes.socket_there.get(), "worker"));
  const auto stderr_pipe =
      MUSTER_TRY(copy_above(kWorkerLiveness, pipes.stderr_write.get(), "worker"));
  const auto liveness = MUSTER_TRY(copy_above(kWorkerLiveness, liveness_pipe, "worker"));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, stderr_pipe.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, stderr_pipe.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, socket.get(), kWorkerSocket);
  posix_spawn_file_actions_adddup2(&actions, liveness.get(), kWorkerLiveness);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);

  std::vector<std::string> arguments{options.program.string(),
                                     std::string(kWorkerDeviceFlag),
                                     options.device.name(),
                                     "--socket-fd",
                                     std::to_string(kWorkerSocket),
                                     std::string(kWorkerLivenessFlag),
                                     std::to_string(kWorkerLiveness),
                                     std::string(kWorkerModelsFlag),
                                     std::string(kWorkerModelsRoom, kWorkerModelsBlank)};
  auto environment = worker_environment(options);
  pid_t pid = -1;
  const int failure = ::posix_spawn(&pid, options.program.c_str(), &actions, &attributes,
                                    pointers(arguments).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    return system_error(options.program.string(), "start the worker", failure);
  }
  return pid;
}

}  // namespace

std::vector<std::string> variables_of(const Device& device) {
  if (device.kind == DeviceKind::Standin) {
    return {fmt::format("{}={}", kStandinVisibleVariable, device.index)};
  }
  if (device.kind != DeviceKind::Cuda) return {};
  if (device.uuid) return {"CUDA_VISIBLE_DEVICES=" + *device.uuid};
  // Without the order CUDA counts the GPU first that it takes for the fastest.
  return {"CUDA_DEVICE_ORDER=PCI_BUS_ID", fmt::format("CUDA_VISIBLE_DEVICES={}", device.index)};
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const Options& options) {
  auto pipes = MUSTER_TRY(open_child_pipes("worker"));
  std::array<int, 2> liveness{};
  if (::pipe2(liveness.data(), O_CLOEXEC) != 0) {
    return system_error("worker pipe", "create", errno);
  }
  UniqueFd liveness_here(liveness[0]);
  const UniqueFd liveness_there(liveness[1]);
  const auto pid = MUSTER_TRY(spawn(options, pipes, liveness_there.get()));
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(
      pid, std::move(pipes.socket_here), std::move(pipes.stderr_read), std::move(liveness_here)));
}

WorkerProcess::WorkerProcess(pid_t pid, UniqueFd socket, UniqueFd stderr_pipe,
                             UniqueFd liveness_pipe)
    : pid_(pid),
      oom_kills_at_start_(count_oom_kills()),
      pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
      channel_(std::move(socket)),
      stderr_(std::move(stderr_pipe)),
      liveness_(std::move(liveness_pipe)) {}

WorkerProcess::~WorkerProcess() {
  if (is_reaped_) return;
  kill();
  (void)reap(kEndAllowance);
}

void WorkerProcess::read_stderr(const std::function<void(const std::string&)>& on_line) {
  for (auto text = read_child_output(stderr_); !text.empty(); text = read_child_output(stderr_)) {
    keep_child_output(stderr_tail_, text);
    for (const char c : text) {
      if (c == '\n' || stderr_line_.size() == kLineSizeMax) {
        on_line(std::exchange(stderr_line_, {}));
      }
      if (c != '\n') stderr_line_ += c;
    }
  }
  const bool is_at_end = !stderr_.is_open();
  if (is_at_end && !stderr_line_.empty()) on_line(std::exchange(stderr_line_, {}));
}

// What dies already dies of something else, and may take seconds to free its memory.
void WorkerProcess::kill() {
  if (!dying()) was_killed_by_us_ = true;
  kill_process(pidfd_);
}

// A process that is killed closes its sockets before it can be waited for.
void WorkerProcess::kill_if_alive() {
  if (has_ended(pidfd_, kEndAllowance)) return;
  if (dying() && has_ended(pidfd_, kFreeingAllowance)) return;
  kill();
}

std::optional<WorkerDeath> WorkerProcess::reap(Duration limit) {
  int status = 0;
  rusage usage{};
  if (!has_ended(pidfd_, limit) || ::wait4(pid_, &status, WNOHANG, &usage) != pid_) {
    return std::nullopt;
  }
  is_reaped_ = true;
  auto death = death_of(status);
  death.cpu_seconds = cpu_seconds(usage);
  return death;
}

// The signal that stopped a process, or a tracer, looks as if it had ended it.
std::optional<WorkerDeath> WorkerProcess::dying() const {
  const int status = early_status(pid_);
  const int number = WTERMSIG(status);
  const bool is_stop = number == SIGSTOP || number == SIGTSTP || number == SIGTTIN ||
                       number == SIGTTOU || number == SIGTRAP;
  return status == 0 || is_stop ? std::nullopt : std::optional(death_of(status));
}

WorkerDeath WorkerProcess::death_of(int status) const {
  WorkerDeath death;
  if (WIFEXITED(status)) {
    death.reason = fmt::format("exit code {}", WEXITSTATUS(status));
    death.is_own_fault = true;
    return death;
  }
  const int number = WTERMSIG(status);
  const bool is_oom =
      number == SIGKILL && !was_killed_by_us_ && count_oom_kills() > oom_kills_at_start_;
  death.is_own_fault = is_oom || was_killed_by_us_ || is_fault_signal(number);
  const char* origin = is_oom ? " by the kernel: out of memory"
                              : (was_killed_by_us_ ? " by muster" : " from outside");
  death.reason = fmt::format("signal {} ({}){}", number, ::strsignal(number),
                             is_fault_signal(number) ? "" : origin);
  return death;
}

}  // namespace muster
