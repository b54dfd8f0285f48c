// Typed reads from a config whose content is not trusted. Errors say file, key and the value
// found, the value shortened. A null counts as absent, except for `states`, which exists for
// keys where null has a meaning of its own. Nesting is bounded while parsing, since each level
// costs far more memory than text.

#include "modelfile/json_fields.h"

#include <fmt/format.h>

#include <utility>

namespace muster {
namespace {

// A value as a message shows it: hostile files may hold megabytes in one field.
std::string shown(const nlohmann::json& value) {
  constexpr std::size_t kShownMax = 60;
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  auto text = value.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kShownMax) text = text.substr(0, kShownMax) + "...";
  return text;
}

}  // namespace

Result<JsonFields> JsonFields::parse(std::string file, std::string_view text) {
  // Every level of nesting costs some sixty times its one byte of text; no config has as many.
  constexpr int kDepthMax = 64;
  bool is_too_deep = false;
  const auto limit = [&](int depth, nlohmann::json::parse_event_t /*event*/,
                         const nlohmann::json& /*parsed*/) {
    is_too_deep |= depth > kDepthMax;
    return depth <= kDepthMax;
  };
  auto object = nlohmann::json::parse(text, limit, /*allow_exceptions=*/false);
  if (is_too_deep) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: nested deeper than {}", file, kDepthMax)};
  }
  if (object.is_discarded()) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: not valid JSON", file)};
  }
  if (!object.is_object()) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: not a JSON object", file)};
  }
  return JsonFields(std::move(file), {}, std::move(object));
}

Result<JsonFields> JsonFields::inner(std::string_view key) const {
  const auto* value = find(key);
  if (value == nullptr || !value->is_object()) return wrong(key, "an object");
  return JsonFields(file_, fmt::format("{}{}.", prefix_, key), *value);
}

bool JsonFields::states(std::string_view key) const { return object_.contains(key); }

const nlohmann::json* JsonFields::find(std::string_view key) const {
  const auto found = object_.find(std::string(key));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::has(std::string_view key) const { return find(key) != nullptr; }

Error JsonFields::wrong(std::string_view key, std::string_view wanted) const {
  const auto* value = find(key);
  return Error{ErrorKind::InvalidArgument,
               value == nullptr ? fmt::format("{}: {}{} is missing", file_, prefix_, key)
                                : fmt::format("{}: {}{} must be {}, not {}", file_, prefix_, key,
                                              wanted, shown(*value))};
}

Result<std::uint32_t> JsonFields::positive(std::string_view key, std::uint32_t max) const {
  const auto* value = find(key);
  if (value == nullptr || !value->is_number_unsigned() || value->get<std::uint64_t>() == 0 ||
      value->get<std::uint64_t>() > max) {
    return wrong(key, fmt::format("an integer of 1 to {}", max));
  }
  return static_cast<std::uint32_t>(value->get<std::uint64_t>());
}

Result<std::uint32_t> JsonFields::positive_or(std::string_view key, std::uint32_t max,
                                              std::uint32_t fallback) const {
  if (!has(key)) return fallback;
  return positive(key, max);
}

Result<bool> JsonFields::boolean_or(std::string_view key, bool fallback) const {
  const auto* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return wrong(key, "true or false");
  return value->get<bool>();
}

Result<double> JsonFields::number_or(std::string_view key, double fallback) const {
  const auto* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number()) return wrong(key, "a number");
  return value->get<double>();
}

Result<std::string> JsonFields::text_or(std::string_view key, std::string_view fallback) const {
  const auto* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) return wrong(key, "a string");
  return value->get<std::string>();
}

}  // namespace muster
