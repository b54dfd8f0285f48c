#pragma once

#include <optional>

#include "planner/accelerate/accelerate_device_map.h"

namespace muster {

/// Places modules exactly as accelerate 1.15.0 does, its faults included: devices in order, none
/// visited again; on the first GPU and on the host the largest layer that is still to come is kept
/// free; a module that does not fit is split into its parameters and children, and its buffers are
/// forgotten. So the map may leave tensors out (`is_whole`).
///
/// nullopt: accelerate stops with an IndexError (a tied parameter whose module it cannot find any
/// more), or goes round without end.
/// Source: accelerate 1.15.0, utils/modeling.py, infer_auto_device_map, get_max_layer_size,
/// get_module_size_with_ties, fallback_allocate. Threads: pure.
std::optional<ModulePlacement> place_as_accelerate(const SizedTree& model,
                                                   const PlaceBudgets& budgets,
                                                   const PlacementOptions& options);

}  // namespace muster
