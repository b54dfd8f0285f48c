#pragma once

#include "engine/ops/kernels.h"

namespace muster::engine {

// One per instruction set, each in a file of its own; running one on a CPU without it is SIGILL.
extern const Kernels kPortableKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

}  // namespace muster::engine
