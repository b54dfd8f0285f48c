#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// A model of the setting `models`, every value in its one form.
struct ModelEntry {
  std::string name;   // empty: as the model is called
  std::string model;  // folder or hub id
  std::optional<std::string> precision = {};
  std::optional<std::string> kv_cache_dtype = {};
  std::optional<std::string> pooling = {};
  std::optional<std::string> normalize = {};
  std::optional<std::string> max_length = {};
  std::optional<std::string> prompt_name = {};
  std::vector<std::string> devices = {};  // empty: all

  bool operator==(const ModelEntry&) const = default;
};

/// Sets the field `key` of an entry; `devices` has commas between.
///
/// subject: where it stands. Errors: InvalidArgument (an unknown key with the nearest right one, a
/// value that its setting does not take).
Status set_model_field(ModelEntry& entry, std::string_view key, std::string_view value,
                       std::string_view subject);

/// "PATH", "NAME=PATH", with commas between, or a JSON array of objects.
///
/// Errors: InvalidArgument (no such form, an entry without a model, two of one name).
Result<std::vector<ModelEntry>> parse_model_entries(std::string_view text,
                                                    std::string_view subject);

/// Errors: InvalidArgument (an entry without a model, two of one name).
Status check_model_entries(const std::vector<ModelEntry>& entries, std::string_view subject);

/// As a JSON array, which `parse_model_entries` reads.
std::string model_entries_text(const std::vector<ModelEntry>& entries);

}  // namespace muster
