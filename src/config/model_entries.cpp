// The setting `models` has three spellings: a path, NAME=PATH, and a JSON array of objects. All
// become the same entries, and an entry's fields are checked by the rules of the setting they stand
// for, so the messages are the same too.
// The text that is stored is always the JSON form, whatever was read, so two spellings of one
// list compare equal. Names must differ: they are how a client says which model it wants. An
// entry without a name is called by its model.

#include "config/model_entries.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "config/values.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

Error invalid(std::string_view subject, const std::string& message) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{}: {}", subject, message)};
}

const std::vector<std::string>& field_names() {
  static const std::vector<std::string> names{"name",           "model",       "precision",
                                              "kv_cache_dtype", "pooling",     "normalize",
                                              "max_length",     "prompt_name", "devices"};
  return names;
}

std::optional<std::string>* option_of(ModelEntry& entry, std::string_view key) {
  if (key == "precision") return &entry.precision;
  if (key == "kv_cache_dtype") return &entry.kv_cache_dtype;
  if (key == "pooling") return &entry.pooling;
  if (key == "normalize") return &entry.normalize;
  if (key == "max_length") return &entry.max_length;
  if (key == "prompt_name") return &entry.prompt_name;
  return nullptr;
}

// A plain value of JSON as its text, a list with commas between; nullopt for an object.
std::optional<std::string> plain_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  if (!value.is_array()) return std::nullopt;
  std::vector<std::string> parts;
  for (const auto& part : value) {
    if (!part.is_string()) return std::nullopt;
    parts.push_back(part.get<std::string>());
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

Result<std::vector<ModelEntry>> parse_json(std::string_view text, std::string_view subject) {
  const auto json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return invalid(subject, "no JSON array of models");
  std::vector<ModelEntry> entries;
  for (const auto& object : json) {
    if (!object.is_object()) return invalid(subject, "each model must be a JSON object");
    auto& entry = entries.emplace_back();
    for (const auto& [key, value] : object.items()) {
      const auto plain = plain_text(value);
      if (!plain) return invalid(subject, fmt::format("{} of a model must be a plain value", key));
      MUSTER_TRY(set_model_field(entry, key, *plain, subject));
    }
  }
  return entries;
}

}  // namespace

Status set_model_field(ModelEntry& entry, std::string_view key, std::string_view value,
                       std::string_view subject) {
  if (value.empty()) return invalid(subject, fmt::format("{} of a model is empty", key));
  if (key == "name") {
    entry.name = value;
  } else if (key == "model") {
    entry.model = value;
  } else if (key == "devices") {
    entry.devices.clear();
    for (const auto& device : split(value, ',')) entry.devices.emplace_back(trim(device));
  } else if (auto* option = option_of(entry, key)) {
    *option =
        MUSTER_TRY(check_value(*find_setting(key), value, fmt::format("{}: {}", subject, key)));
  } else {
    const auto nearest = nearest_name(key, field_names());
    return invalid(subject,
                   fmt::format("a model has no setting {}; {}", key,
                               nearest ? fmt::format("did you mean {}?", *nearest)
                                       : fmt::format("it has {}", fmt::join(field_names(), ", "))));
  }
  return Done{};
}

Result<std::vector<ModelEntry>> parse_model_entries(std::string_view text,
                                                    std::string_view subject) {
  std::vector<ModelEntry> entries;
  if (trim(text).starts_with('[')) {
    entries = MUSTER_TRY(parse_json(text, subject));
  } else {
    for (const auto& raw : split(text, ',')) {
      const auto piece = trim(raw);
      const auto equals = piece.find('=');
      auto& entry = entries.emplace_back();
      if (equals == 0) return invalid(subject, fmt::format("a name is missing before {}", piece));
      if (equals != std::string_view::npos) entry.name = piece.substr(0, equals);
      entry.model = equals == std::string_view::npos ? piece : piece.substr(equals + 1);
    }
  }
  MUSTER_TRY(check_model_entries(entries, subject));
  return entries;
}

// Run again over the whole list by each reader, since a name may be repeated across its parts.
Status check_model_entries(const std::vector<ModelEntry>& entries, std::string_view subject) {
  std::set<std::string> names;
  for (const auto& entry : entries) {
    if (entry.model.empty()) return invalid(subject, "a model needs a folder or a hub id");
    const auto& name = entry.name.empty() ? entry.model : entry.name;
    if (!names.insert(name).second) {
      return invalid(subject, fmt::format("two models have the name {}", name));
    }
  }
  return Done{};
}

// Fields come in one fixed order, whatever order they were given in, so that equal lists have
// equal text.
std::string model_entries_text(const std::vector<ModelEntry>& entries) {
  Json json = Json::array();
  for (const auto& entry : entries) {
    Json object = Json::object();
    if (!entry.name.empty()) object["name"] = entry.name;
    object["model"] = entry.model;
    auto copy = entry;
    for (const auto& key : field_names()) {
      const auto* option = option_of(copy, key);
      if (option != nullptr && *option) object[key] = **option;
    }
    if (!entry.devices.empty()) object["devices"] = entry.devices;
    json.push_back(std::move(object));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace muster
