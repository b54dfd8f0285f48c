#pragma once

namespace muster {

/// Asks the kernel to run the calling thread soon whenever it wakes, before threads that compute:
/// in slices of a tenth of a millisecond. It is for a thread that serves many others a little at a
/// time. Its share of a processor stays what it was; what it starts from now on, thread or process,
/// has the usual slice.
///
/// False where that is not asked for or was refused: the thread has another policy than the usual
/// one or a nice value below 0, which whoever has set it wants kept. Before Linux 6.12 it changes
/// nothing.
///
/// Source: sched_setattr(2); Linux, Documentation/scheduler/sched-eevdf.rst: among the threads that
/// have had less than their share, the one whose slice ends first comes next.
bool ask_for_short_slices();

}  // namespace muster
