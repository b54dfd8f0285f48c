#pragma once

#include <cstdint>
#include <vector>

#include "config/schema.h"

namespace muster {

/// The rows of the schema by topic, each in the order of SettingId; `settings()` is all of them.
std::vector<Setting> work_settings();
std::vector<Setting> server_settings();
std::vector<Setting> fleet_settings();

/// The largest number of tokens that is not surely a typing error; models grow.
inline constexpr std::uint64_t kTokensMost = 1 << 20;

}  // namespace muster
