#pragma once

#include <nlohmann/json.hpp>

#include "config/config.h"

namespace muster {

/// The value of a setting as JSON: numbers, switches, maps and models as such, times and sizes as
/// people write them; null without a value.
nlohmann::ordered_json setting_json(const Config& config, const Setting& setting);

}  // namespace muster
