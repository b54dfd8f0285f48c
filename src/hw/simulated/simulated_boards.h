#pragma once

#include <optional>
#include <string_view>

namespace muster {

/// What a simulated GPU of a type shows beside what `gpu_catalogue` knows.
struct SimulatedBoard {
  std::string_view name;  // as in the catalogue
  double power_limit_watts = 0;
  std::optional<double> graphics_hertz_max;
  std::optional<double> memory_hertz_max;
  bool has_activity_counters = false;  // GPM: Hopper and later
};

/// nullptr: the power of this type is not known, so that what depends on it stays absent.
///
/// Source: power: the data sheet that gpu_catalogue.cpp names for the type, its highest
/// configuration; clocks: clocks.max.graphics and clocks.max.memory of nvidia-smi, for AMD the data
/// sheet, where known.
const SimulatedBoard* find_simulated_board(std::string_view name);

}  // namespace muster
