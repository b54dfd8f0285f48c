#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

/// What a command took by itself: its own processes and those that it waited for. Memory is that of
/// the largest of them; bytes are what went to and came from storage, not from the page cache.
///
/// Source: getrusage(2); `ru_maxrss` counts KiB, `ru_inblock` and `ru_oublock` blocks of 512 bytes.
struct ProcessUse {
  double user_seconds = 0;
  double system_seconds = 0;
  std::uint64_t peak_memory_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
};

/// A command that is run for somebody: a process group of its own, which has the terminal where
/// there is one, and gets the signals that we get.
///
/// The destructor leaves it alone. Not thread-safe.
class ChildCommand {
 public:
  /// Errors: NotFound (no such program), InvalidArgument (it may not be run), those of the system.
  static Result<ChildCommand> start(std::vector<std::string> words);

  /// The exit code when it has ended: its own, or 128 and the signal, as a shell tells it.
  std::optional<int> exit_code();

  /// What it took; nullopt before its end.
  const std::optional<ProcessUse>& use() const { return use_; }

  void pass_on(int signal_number) const;

  /// The process or one of its ancestors is the command.
  bool has(std::uint32_t pid) const;

 private:
  explicit ChildCommand(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  std::optional<ProcessUse> use_;
};

}  // namespace muster
