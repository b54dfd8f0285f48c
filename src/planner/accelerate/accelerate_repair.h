#pragma once

#include "planner/accelerate/accelerate_device_map.h"

namespace muster {

/// Places modules by accelerate's idea without its faults: every tensor gets a place, tied
/// parameters share one, and no budget is exceeded (the disk has none). The departures, each with
/// the fault it avoids, are stated beside the code.
///
/// Units go to the accelerators in order, then to the host, then to disk. Cost: O(nodes x depth)
/// without ties. Threads: pure.
ModulePlacement place_repaired(const SizedTree& model, const PlaceBudgets& budgets,
                               const PlacementOptions& options);

/// Gives the buffers that accelerate's splits forget (huggingface/accelerate issues 3956 and 4014)
/// the place of the nearest tensors that has room for them; nothing else moves.
///
/// nullopt: a parameter has no place, tied parameters have two or a budget is exceeded, which no
/// addition repairs.
std::optional<DeviceMap> completed_device_map(const SizedTree& model, const PlaceBudgets& budgets,
                                              const DeviceMap& map);

/// Bits of the tensors that `map` puts on the host or on disk.
std::int64_t offloaded_bits(const SizedTree& model, const DeviceMap& map);

}  // namespace muster
