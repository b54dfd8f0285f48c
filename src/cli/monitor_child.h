#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

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

  void pass_on(int signal_number) const;

  /// The process or one of its ancestors is the command.
  bool has(std::uint32_t pid) const;

 private:
  explicit ChildCommand(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

}  // namespace muster
