#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "net/frame_channel.h"
#include "spec/device.h"

namespace muster {

/// How a worker ended, in words and for the strike rule.
struct WorkerDeath {
  std::string reason;         // "signal 9 (Killed) from outside", "exit code 1"
  bool is_own_fault = false;  // a fault signal, an exit code, an out-of-memory kill,
                              // a hang that we ended; not a kill from outside
  double cpu_seconds = 0;     // user + system of its whole life
};

/// The variables by which a worker sees `device` and no other one: "NAME=value". A GPU goes by its
/// UUID; without one by its number in PCI order, which must be certain (cli/find_machine.h).
std::vector<std::string> variables_of(const Device& device);

/// One muster-worker: the process, its frames and its stderr.
///
/// Owner: the coordinator's loop. The destructor kills the process and waits a second for its end;
/// one that is stuck in the kernel is left to init.
/// Threads: not thread-safe.
class WorkerProcess {
 public:
  struct Options {
    std::filesystem::path program;
    std::filesystem::path torch_root;  // its lib/ is put on LD_LIBRARY_PATH; empty: left alone
    Device device;
  };

  /// Starts the program in a process group of its own (a Ctrl-C of the terminal is for the parent
  /// alone), its socket at descriptor 3 and the liveness pipe at 4.
  ///
  /// Errors: NotFound (no such program), Unavailable and ResourceExhausted from the system.
  static Result<std::unique_ptr<WorkerProcess>> start(const Options& options);

  ~WorkerProcess();

  pid_t pid() const { return pid_; }
  FrameChannel& channel() { return channel_; }
  int exit_fd() const { return pidfd_.get(); }     // readable when the process has ended
  int stderr_fd() const { return stderr_.get(); }  // -1 once it is closed

  /// Readable once the process dies: this or its socket before the kernel has freed its memory
  /// (base/liveness_pipe.h). -1 once it is closed.
  int liveness_fd() const { return liveness_.get(); }
  void close_liveness() { liveness_.reset(); }

  /// How a process that dies will have ended, but for its CPU time. nullopt: it lives, its exit
  /// code is 0, or the kernel does not say so before the end.
  std::optional<WorkerDeath> dying() const;

  /// Reads what the worker printed, keeps the last 4 KB, and gives each whole line to `on_line`.
  void read_stderr(const std::function<void(const std::string&)>& on_line);

  /// The last 4 KB of stderr.
  const std::string& stderr_tail() const { return stderr_tail_; }

  /// Closes the socket: the worker sees end-of-file and exits.
  void close() { channel_.close(); }

  /// Counts as a kill by muster in the reason of the death, unless the process dies already.
  void kill();

  /// Waits a second for the process to end by itself, ten more while it dies, and kills it then.
  void kill_if_alive();

  /// How the process ended, waited for no longer than `limit`. nullopt: it runs, or the kernel does
  /// not hand it over: a call into a driver that does not return holds it ("D" in ps), or another
  /// process traces it. Not to be called again once it has told.
  std::optional<WorkerDeath> reap(Duration limit);

  /// The destructor waits for it no more: it is init's when this process ends.
  void leave() { is_reaped_ = true; }

 private:
  WorkerProcess(pid_t pid, UniqueFd socket, UniqueFd stderr_pipe, UniqueFd liveness_pipe);

  WorkerDeath death_of(int status) const;

  pid_t pid_;
  bool is_reaped_ = false;
  bool was_killed_by_us_ = false;
  std::uint64_t oom_kills_at_start_;
  UniqueFd pidfd_;
  FrameChannel channel_;
  UniqueFd stderr_;
  UniqueFd liveness_;
  std::string stderr_line_;
  std::string stderr_tail_;
};

}  // namespace muster
