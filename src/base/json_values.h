#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace muster {

/// The value as JSON, or null where it is not known.
template <typename T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace muster
