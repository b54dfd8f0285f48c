#pragma once

#include "base/unique_fd.h"

namespace muster {

/// Has a thread that does nothing else keep the writing end of a pipe, alone of all descriptors, so
/// that whoever reads the other end, and watches one of the process's other descriptors, finds the
/// end of one of them as soon as the process dies. Without it all of them end once the kernel has
/// freed the memory of the process: 60 ms later for each GiB. Where a core is written, they end
/// behind that.
///
/// Source: Linux, kernel/exit.c, do_exit: a thread closes the descriptors that no other one has as
/// soon as it has left the memory to the others; the last one frees it first. Should that be this
/// thread, the other descriptors end at once, and the pipe then. 60 ms: measured on a Sapphire
/// Rapids, Linux 6.18.
///
/// To be called once, before any other thread is started: for a moment two have the caller's errno.
/// False where there can be no such thread (under ThreadSanitizer): the pipe ends with the process.
bool keep_liveness_pipe(UniqueFd write_end);

}  // namespace muster
