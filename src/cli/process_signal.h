#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace muster {

/// Sends a signal to a process of this user that calls itself `command`, so that a number which
/// another process has got since is not hit.
///
/// Errors: NotFound (it has ended, or is another one by now), InvalidArgument (somebody else's).
/// Source: pidfd_send_signal(2); /proc/PID/comm, proc(5).
Status send_signal(std::uint32_t pid, const std::string& command, int signal_number);

}  // namespace muster
