// The kept fields of an index by column, each different value once. A column holds a number for
// each row, which is the place of its value among the different ones; 0 stands for no value. A
// condition is therefore evaluated once for each different value and not once for each row.

#include "dataset/field_table.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace muster {
namespace {

// No corpus has more names than a person can list; each takes four bytes a row.
constexpr std::size_t kColumnsMost = 1024;

// Different values have different keys: each text stands behind its length.
std::string key_of(const FieldValue& value) {
  std::string key;
  for (const auto& scalar : value) {
    key += fmt::format("{}:", scalar.text.size());
    key += scalar.text;
  }
  return key;
}

}  // namespace

// std::from_chars would also take "nan", "inf" and "1.", which are no numbers of JSON's.
// Source: RFC 8259 section 6.
std::optional<double> number_of_text(std::string_view text) {
  const auto digits = text.substr(text.starts_with('-') ? 1 : 0);
  const bool begins_well =
      !digits.empty() && digits.front() >= '0' && digits.front() <= '9' &&
      !(digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9');
  const auto dot = text.find('.');
  const bool has_fraction = dot == std::string_view::npos ||
                            (dot + 1 < text.size() && text[dot + 1] >= '0' && text[dot + 1] <= '9');
  if (!begins_well || !has_fraction) return std::nullopt;
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

void FieldTable::add_row() {
  for (auto& column : columns_) column.of_row.push_back(0);
  ++row_count_;
}

Status FieldTable::set(std::string_view name, FieldValue value) {
  MUSTER_CHECK(known_.size() == columns_.size());  // not finished
  auto found = places_.find(name);
  if (found == places_.end()) {
    if (columns_.size() == kColumnsMost) {
      return Error{ErrorKind::ResourceExhausted,
                   fmt::format("more than {} different kept fields", kColumnsMost)};
    }
    found = places_.emplace(name, columns_.size()).first;
    columns_.push_back({.name = std::string(name)});
    columns_.back().of_row.resize(row_count_);
    known_.emplace_back();
  }
  auto& column = columns_[found->second];
  std::uint32_t place = 0;
  if (!value.empty()) {
    if (column.values.size() == std::numeric_limits<std::uint32_t>::max()) {
      return Error{ErrorKind::ResourceExhausted,
                   fmt::format("too many different values of the field {}", name)};
    }
    auto& known = known_[found->second];
    const auto next = static_cast<std::uint32_t>(column.values.size());
    place = known.emplace(key_of(value), next).first->second;
    if (place == next) {
      for (const auto& scalar : value) {
        (scalar.number ? column.has_numbers : column.has_others) = true;
      }
      column.values.push_back(std::move(value));
    }
  }
  column.of_row.back() = place;
  return Done{};
}

void FieldTable::finish() {
  known_ = {};
  for (auto& column : columns_) {
    column.values.shrink_to_fit();
    column.of_row.shrink_to_fit();
  }
}

const FieldColumn* FieldTable::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &columns_[found->second];
}

std::vector<std::string> FieldTable::names() const {
  std::vector<std::string> names;
  for (const auto& column : columns_) names.push_back(column.name);
  return names;
}

}  // namespace muster
