#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/plan/plan.h"
#include "planner/plan/plan_state.h"

namespace muster {

/// The plan that the same strategy makes with the least more memory on each device, such that it
/// needs no disk, then no host memory any more, or is of other copies or cuts and serves the
/// objective at least 1 % better; or one more device, where every device has a copy. Never what
/// `plan` is already.
/// nullopt for a custom map, and beyond 64 devices, where tens of plans take too long.
std::optional<PlanAlternative> next_better_plan(const PlanState& state, const Plan& plan);

/// Weights of a copy that are in host memory or on disk.
std::uint64_t off_device_bytes(const Plan& plan);

/// "2 copies, each on 4 devices by tensor parallelism".
std::string copies_text(const Plan& plan);

/// "2,161 tokens a second".
std::string rate_text(const Plan& plan);

/// "12.3 ms", "4.22 s".
std::string duration_text(double seconds);

}  // namespace muster
