#include "fake_nvml/json_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace muster::fake_nvml {

Error Field::must_be(std::string_view wanted) const {
  return Error{ErrorKind::InvalidArgument, fmt::format("{} must be {}", place_, wanted)};
}

Status Field::check_keys(std::span<const std::string_view> keys) const {
  if (!json_->is_object()) return must_be("an object");
  for (const auto& [key, value] : json_->items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    const std::vector<std::string> known(keys.begin(), keys.end());
    const auto nearest = nearest_name(key, known);
    const auto advice = nearest ? "did you mean " + *nearest + "?"
                                : fmt::format("{} are there", fmt::join(known, ", "));
    return Error{ErrorKind::InvalidArgument, fmt::format("{}{}unknown key {}: {}", place_,
                                                         place_.empty() ? "" : ": ", key, advice)};
  }
  return Done{};
}

std::optional<Field> Field::child(std::string_view key) const {
  const auto found = json_->find(key);
  if (found == json_->end()) return std::nullopt;
  return Field(*found, place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key));
}

Result<std::vector<Field>> Field::items() const {
  if (!json_->is_array()) return must_be("a list");
  std::vector<Field> items;
  for (std::size_t i = 0; i < json_->size(); ++i) {
    items.emplace_back((*json_)[i], fmt::format("{}[{}]", place_, i));
  }
  return items;
}

Result<std::vector<std::pair<std::string, Field>>> Field::members() const {
  if (!json_->is_object()) return must_be("an object");
  std::vector<std::pair<std::string, Field>> members;
  for (const auto& [key, value] : json_->items()) {
    members.emplace_back(key, Field(value, fmt::format("{}.{}", place_, key)));
  }
  return members;
}

Result<double> Field::number(double min, double max) const {
  if (json_->is_number()) {
    const double value = json_->get<double>();
    if (value >= min && value <= max) return value;
  }
  if (min == 0 && max >= 1e18) return must_be("a number of at least 0");
  if (max >= 1e18) return must_be("a number");
  return must_be(fmt::format("a number from {} to {}", min, max));
}

Result<std::uint64_t> Field::integer(std::uint64_t max) const {
  if (json_->is_number_unsigned() && json_->get<std::uint64_t>() <= max) {
    return json_->get<std::uint64_t>();
  }
  if (max == std::numeric_limits<std::uint64_t>::max()) return must_be("a whole number");
  return must_be(fmt::format("a whole number up to {}", max));
}

Result<bool> Field::boolean() const {
  if (!json_->is_boolean()) return must_be("true or false");
  return json_->get<bool>();
}

Result<std::string> Field::text() const {
  if (!json_->is_string()) return must_be("a text");
  return json_->get<std::string>();
}

Status Field::read(std::string_view key, double& out, double min, double max) const {
  if (const auto field = child(key)) out = MUSTER_TRY(field->number(min, max));
  return Done{};
}

Status Field::read(std::string_view key, std::uint64_t& out) const {
  if (const auto field = child(key)) out = MUSTER_TRY(field->integer());
  return Done{};
}

Status Field::read(std::string_view key, std::uint32_t& out) const {
  if (const auto field = child(key)) {
    const auto value = MUSTER_TRY(field->integer(std::numeric_limits<std::uint32_t>::max()));
    out = static_cast<std::uint32_t>(value);
  }
  return Done{};
}

Status Field::read(std::string_view key, std::string& out) const {
  if (const auto field = child(key)) out = MUSTER_TRY(field->text());
  return Done{};
}

Status Field::read(std::string_view key, bool& out) const {
  if (const auto field = child(key)) out = MUSTER_TRY(field->boolean());
  return Done{};
}

}  // namespace muster::fake_nvml
