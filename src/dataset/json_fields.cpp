// Fields of a record by name, and their values as JSON again.

#include "dataset/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "dataset/json_text.h"

namespace muster {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kNamesMost = 64;  // enough to find a slip of the pen
constexpr int kLevelsNamed = 3;         // of objects within objects

std::optional<dom::element> find_key(dom::object object, std::string_view key) {
  std::optional<dom::element> found;
  for (const auto field : object) {
    if (field.key == key) found = field.value;
  }
  return found;
}

void add_names(dom::object object, const std::string& before, int level,
               std::vector<std::string>& names) {
  for (const auto field : object) {
    if (names.size() == kNamesMost) return;
    const auto name = fmt::format("{}{}", before, field.key);
    dom::object inner;
    if (level < kLevelsNamed && field.value.get(inner) == simdjson::SUCCESS) {
      add_names(inner, name + ".", level + 1, names);
    } else {
      names.push_back(name);
    }
  }
}

template <typename Number>
void append_number(Number value, std::string& out) {
  char digits[32];  // the longest double is "-2.2250738585072014e-308"
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

bool append_scalar(dom::element value, std::string& out) {
  switch (value.type()) {
    case dom::element_type::STRING:
      append_json_string(std::string_view(value), out);
      return true;
    case dom::element_type::INT64:
      append_number(std::int64_t(value), out);
      return true;
    case dom::element_type::UINT64:
      append_number(std::uint64_t(value), out);
      return true;
    case dom::element_type::DOUBLE:
      append_number(double(value), out);
      return true;
    case dom::element_type::BOOL:
      out += bool(value) ? "true" : "false";
      return true;
    case dom::element_type::ARRAY:
    case dom::element_type::OBJECT:
    case dom::element_type::NULL_VALUE:
      break;
  }
  return false;
}

}  // namespace

std::optional<dom::element> find_json_field(dom::object object, std::string_view name) {
  if (const auto value = find_key(object, name)) return value;
  for (auto dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    const auto outer = find_key(object, name.substr(0, dot));
    dom::object inner;
    if (!outer || outer->get(inner) != simdjson::SUCCESS) continue;
    if (const auto value = find_json_field(inner, name.substr(dot + 1))) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> doubled_json_key(dom::object object) {
  std::vector<std::string_view> keys;
  for (const auto field : object) keys.push_back(field.key);
  std::sort(keys.begin(), keys.end());
  const auto found = std::adjacent_find(keys.begin(), keys.end());
  return found == keys.end() ? std::nullopt : std::optional(*found);
}

std::optional<std::string> doubled_json_key_on_way(dom::object object, std::string_view name) {
  if (find_key(object, name)) return std::nullopt;
  for (auto dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    const auto before = name.substr(0, dot);
    const auto rest = name.substr(dot + 1);
    const auto outer = find_key(object, before);
    dom::object inner;
    if (!outer || outer->get(inner) != simdjson::SUCCESS) continue;
    if (const auto key = doubled_json_key(inner)) return fmt::format("{}.{}", before, *key);
    if (const auto key = doubled_json_key_on_way(inner, rest)) {
      return fmt::format("{}.{}", before, *key);
    }
    if (find_json_field(inner, rest)) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> doubled_json_key_within(dom::element value) {
  dom::object object;
  if (value.get(object) == simdjson::SUCCESS) {
    if (const auto key = doubled_json_key(object)) return fmt::format(".{}", *key);
    for (const auto field : object) {
      const auto place = doubled_json_key_within(field.value);
      if (place) return fmt::format(".{}{}", field.key, *place);
    }
    return std::nullopt;
  }
  dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return std::nullopt;
  std::size_t index = 0;
  for (const auto element : list) {
    if (const auto place = doubled_json_key_within(element)) {
      return fmt::format("[{}]{}", index, *place);
    }
    ++index;
  }
  return std::nullopt;
}

std::vector<std::string> json_field_names(dom::object object) {
  std::vector<std::string> names;
  add_names(object, "", 1, names);
  return names;
}

bool append_json_value(dom::element value, std::string& out) {
  if (value.is_null() || append_scalar(value, out)) return true;
  dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return false;
  const auto before = out.size();
  out += '[';
  for (const auto element : list) {
    if (out.back() != '[') out += ',';
    if (append_scalar(element, out)) continue;
    out.resize(before);
    return false;
  }
  out += ']';
  return true;
}

std::string_view json_type_words(dom::element_type type) {
  switch (type) {
    case dom::element_type::ARRAY:
      return "an array";
    case dom::element_type::OBJECT:
      return "an object";
    case dom::element_type::STRING:
      return "a string";
    case dom::element_type::BOOL:
      return "true or false";
    case dom::element_type::NULL_VALUE:
      return "null";
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
    case dom::element_type::DOUBLE:
      break;
  }
  return "a number";
}

void append_kept_field(std::string_view name, std::string_view json, std::string& fields) {
  if (fields.empty()) {
    fields = '{';
  } else {
    fields.back() = ',';
  }
  append_json_string(name, fields);
  fields += ':';
  fields += json;
  fields += '}';
}

}  // namespace muster
