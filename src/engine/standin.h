#pragma once

#include "base/result.h"

namespace muster::engine {

/// Opens libmuster-standin.so, once: the stand-in for a GPU (stand_ins/standin), which lies beside
/// the program in a build and is in no package.
///
/// Errors: Unsupported, with the reason. Threads: any.
Status open_standin();

}  // namespace muster::engine
