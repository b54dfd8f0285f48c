#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace muster {

/// Runs a program (found on the PATH, no shell) and gives what it prints on standard output; its
/// standard error is thrown away. It is killed when the time is over or when it prints more than 64
/// kB.
///
/// Errors: NotFound (no such program), Unavailable (it failed, with its exit code),
/// DeadlineExceeded, ResourceExhausted (too much output).
Result<std::string> ask_program(const std::vector<std::string>& command, Duration time);

}  // namespace muster
