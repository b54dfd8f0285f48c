#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/frame_channel.h"
#include "telemetry/call_page.h"
#include "telemetry/sample_ring.h"

namespace muster {

/// How a sampler ended.
struct SamplerDeath {
  std::string reason;         // "signal 11 (Segmentation fault)", "exit code 6"
  bool is_own_fault = false;  // a fatal signal that it raised, or an exit code: not a kill
};

/// muster-sampler, kept open from the first start on: the next start is the same build, whatever
/// was installed meanwhile.
struct SamplerProgram {
  std::filesystem::path path;
  UniqueFd file;  // O_PATH

  /// path: empty is muster-sampler beside the running program.
  ///
  /// Errors: NotFound, and others from the system.
  static Result<SamplerProgram> open(std::filesystem::path path);
};

/// One sampler: the process, its frames, and what it and its drivers print.
///
/// Owner: the collector's loop. The destructor kills and reaps the process, as `reap` does.
/// Threads: not thread-safe.
class SamplerProcess {
 public:
  /// Starts `PROGRAM --of-build BUILD` in a process group of its own (a Ctrl-C of the terminal is
  /// for the parent alone), the socket at descriptor 3, the page at 4 and the ring at 5.
  ///
  /// Errors: Unavailable and ResourceExhausted from the system.
  static Result<std::unique_ptr<SamplerProcess>> start(const SamplerProgram& program,
                                                       const CallPage& page,
                                                       const SampleRing& ring);
  ~SamplerProcess();

  pid_t pid() const { return pid_; }
  FrameChannel& channel() { return channel_; }
  int exit_fd() const { return pidfd_.get(); }     // readable when the process has ended
  int stderr_fd() const { return stderr_.get(); }  // -1 once it is closed

  /// Takes what is in the pipe of standard error.
  void read_stderr();

  /// The last whole line there, without what precedes it; empty: it said nothing.
  std::string last_words() const;

  /// Waits for the end of the process, which is near, and says how it was. One that does not end is
  /// killed, and one that a driver's call holds even then is left to the system: whoever waits goes
  /// on after 1.1 s at most. Call once.
  SamplerDeath reap();

 private:
  SamplerProcess(pid_t pid, UniqueFd socket, UniqueFd stderr_pipe);

  pid_t pid_;
  bool is_reaped_ = false;
  UniqueFd pidfd_;
  FrameChannel channel_;
  UniqueFd stderr_;
  std::string stderr_tail_;
};

}  // namespace muster
