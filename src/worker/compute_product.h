#pragma once

#include "base/result.h"
#include "wire/messages.h"

namespace muster {

/// Makes the products of a ComputeTest in every precision that the device may use: in rounds, all
/// lanes at once, until the time is over, at least two and at most a thousand.
///
/// Errors: Unsupported (no such device), ResourceExhausted, Internal. Threads: starts one a lane.
Result<ComputeResult> run_compute_test(const ComputeTest& test);

}  // namespace muster
