#pragma once

#include <sys/types.h>

namespace muster {

/// Whether some thread of a process runs, or would if it had a CPU (state R). A thread that waits
/// for a lock, a disk or a driver, and one that is stopped, does not; nor does a process that is
/// gone, or cannot be read.
///
/// Source: Linux, proc_pid_stat(5), field 3.
bool has_runnable_thread(pid_t pid);

}  // namespace muster
