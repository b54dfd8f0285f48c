#pragma once

#include "base/result.h"
#include "cli/command.h"
#include "planner/plan/plan.h"
#include "spec/workload.h"

namespace muster {

/// The flags of `muster plan` and `muster estimate` that describe the load.
FlagGroup workload_flags();

/// The flags of `muster plan` that say how to place.
FlagGroup placement_flags();

/// Reads `workload_flags`. `kind` decides the task where none is given: embed for an encoder, else
/// generate.
///
/// Errors: InvalidArgument, naming the flag, its value and the nearest right form.
Result<Workload> workload_of(const Arguments& arguments, ModelKind kind);

/// Reads both groups; `--map` is read by the caller.
///
/// Errors: InvalidArgument, as above.
Result<PlanRequest> plan_request_of(const Arguments& arguments, ModelKind kind);

}  // namespace muster
