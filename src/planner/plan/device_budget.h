#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "planner/plan/plan.h"
#include "spec/machine.h"

namespace muster {

/// What a plan may use of one place, and what it keeps free there.
struct DeviceBudget {
  std::uint64_t usable_bytes = 0;
  std::uint64_t margin_bytes = 0;

  bool operator==(const DeviceBudget&) const = default;
};

/// The budgets of a whole machine.
struct MachineBudgets {
  std::vector<DeviceBudget> devices;  // as Machine::devices
  DeviceBudget host;                  // memory for layers that fit nowhere else
  bool has_disk = true;
};

/// usable = min(max_memory, free - margin) for a device; a host that shares its memory with the
/// devices (a machine of CPU devices only) has none of its own, so that nothing is counted twice.
///
/// Errors: InvalidArgument for a name in `max_memory` that the machine does not have, with the
/// nearest one it has. Threads: pure.
Result<MachineBudgets> machine_budgets(const Machine& machine, const PlanMargin& margin,
                                       const PlanRequest& request);

/// The index of the device that `name` means: "cuda:1", or "1" for the second one.
///
/// Errors: InvalidArgument, with the nearest name.
Result<std::uint32_t> device_by_name(const Machine& machine, std::string_view name);

}  // namespace muster
