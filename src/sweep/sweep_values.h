#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sweep/config_tree.h"
#include "sweep/sweep_keys.h"

namespace muster {

/// The values of a key as texts in their one form: one, or those of a sweep, none twice.
///
/// place: for messages, "bench.yaml:7: scenario.seed".
/// Errors: InvalidArgument, with the right form and the nearest right word. Threads: pure.
Result<std::vector<std::string>> read_sweep_values(const SweepKeyRow& row, const ConfigNode& node,
                                                   std::string_view place);

}  // namespace muster
