#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/sweep_keys.h"
#include "sweep/sweep_points.h"

namespace muster {

/// The words behind `muster` that measure a point: "bench", "embed", MODEL, "--batch=8", …
///
/// task: of the sweep. Threads: pure.
std::vector<std::string> point_words(const SweepPoint& point, std::string_view task);

/// The key that a flag of such words comes from, so that a message about "--rate" can name the
/// place of scenario.rate. nullopt: none.
std::optional<SweepKey> key_of_flag(std::string_view flag);

}  // namespace muster
