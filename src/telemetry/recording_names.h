#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "spec/telemetry.h"

namespace muster {

/// "well", "warning", "unfit": as recordings and JSON say it.
constexpr std::string_view health_state_name(HealthState state) {
  constexpr std::array<std::string_view, 3> kNames{"well", "warning", "unfit"};
  return kNames[static_cast<std::size_t>(state)];
}

/// "compute", "graphics", "mps".
constexpr std::string_view process_kind_name(GpuProcessKind kind) {
  constexpr std::array<std::string_view, 3> kNames{"compute", "graphics", "mps"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace muster
