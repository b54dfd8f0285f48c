#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace muster {

/// The docker client of this machine, run as a program with a list of words; no shell reads them.
///
/// Threads: not thread-safe.
class DockerClient {
 public:
  /// Looks for `docker` on the PATH.
  ///
  /// Errors: NotFound, with the way out.
  static Result<DockerClient> find();

  /// What a quick command prints on standard output; its standard error becomes the message.
  ///
  /// words: without the leading "docker". Errors: Unavailable (the client failed, in its own
  /// words), DeadlineExceeded (no answer within a minute), ResourceExhausted (it printed too much).
  Result<std::string> ask(const std::vector<std::string>& words) const;

  /// How a command ended whose standard error the user sees, such as the progress of a download.
  struct Outcome {
    int exit_code = 0;
    std::string out;  // its standard output, if it was kept
  };

  /// Runs a command to its end, however long it takes. Keeps its standard output, or lets the user
  /// see that as well.
  Result<Outcome> run(const std::vector<std::string>& words, bool keeps_output) const;

  const std::string& program() const { return program_; }

 private:
  explicit DockerClient(std::string program) : program_(std::move(program)) {}

  std::string program_;
};

}  // namespace muster
