#pragma once

#include "standin/machine.h"

namespace muster::standin {

/// Before a SIGSEGV ends the process because the host touches what it may not, or a kernel what
/// nobody has, a line on standard error says which rule was broken. Other faults go to the handler
/// that was there.
///
/// Owner: `machine` lives until the process ends. Threads: once.
void explain_host_access(const Machine& machine);

}  // namespace muster::standin
