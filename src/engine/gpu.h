#pragma once

#include "base/result.h"
#include "spec/device.h"

namespace muster::engine {

/// Opens what torch needs for devices of this kind, once in a process: libtorch_cuda.so (cuda.h),
/// or libmuster-standin.so (standin.h). Call before anything asks torch about devices: torch keeps
/// its first answer. A process opens one of the two, and has one device. Its products of 16 bits
/// have sums in float32 throughout.
///
/// Errors: Unsupported, with the reason: another kind, no such library, or no device that it can
/// use. Threads: any.
Status open_gpu(DeviceKind kind);

/// Whether the open device still computes: false after one of CUDA's sticky errors (an illegal
/// address, an assertion of a kernel, a lost device), after which every call of the process fails
/// and only a new process has the device again. Waits for the calling thread's stream.
///
/// Threads: any. Source: CUDA 13.0 runtime API, cudaError_t: "leaves the process in an inconsistent
/// state".
bool is_gpu_usable(DeviceKind kind);

/// Gives the open device back what libraries and allocator keep of what was computed so far, by
/// whichever thread: the next to compute begin as the first. Waits for the calling thread's stream;
/// no other may compute meanwhile. A device that fails has nothing to give.
void release_workspaces(DeviceKind kind);

}  // namespace muster::engine
