// Joins the tables of settings and derives flag and variable from each name. Tests compare the
// result with docs/settings.md.
// A row's place is its SettingId, which is checked at each look-up, so a table in the wrong
// order fails at once. Names of other programs are not aliases: they only lead the hint of an
// error to the right setting.

#include "config/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "config/schema_rows.h"

namespace muster {
namespace {

// What the programs of docs/from-the-documents.md call a setting in their own configurations; their
// variables are in foreign_table.cpp.
constexpr std::pair<std::string_view, SettingId> kNamesOfOthers[] = {
    {"gpu_ids", SettingId::Devices},
    {"device_ids", SettingId::Devices},
    {"use_multi_gpu", SettingId::DeviceCountMost},
    {"batch_size", SettingId::BatchTokens},
    {"batch_size_per_gpu", SettingId::BatchTokens},
    {"mixed_precision", SettingId::Precision},
    {"torch_dtype", SettingId::Precision},
    {"memory_fraction", SettingId::MemoryThreshold},
    {"model_name", SettingId::Models},
};

// What they have and a setting is not: where it is said instead.
constexpr std::pair<std::string_view, std::string_view> kSaidOtherwise[] = {
    {"backend",
     "the settings stand side by side here: its device_ids is devices (cuda:0,cuda:1), its "
     "torch_dtype precision; device_map and max_memory are flags of muster plan (--strategy, "
     "--max-memory); a benchmark's file is for muster bench run"},
    {"device_map", "muster plan --strategy says how a model is cut, and --map reads such a map"},
    {"max_memory", "muster plan --max-memory cuda:0=20GB,cuda:1=20GB limits it"},
    {"trust_remote_code", "a model's own Python is never run"},
    {"tp_plan", "muster plan --tensor-parallel plans it"},
};

std::optional<std::string_view> said_otherwise(std::string_view name) {
  for (const auto& [theirs, sentence] : kSaidOtherwise) {
    if (theirs == name) return sentence;
  }
  return std::nullopt;
}

const std::vector<Setting>& schema() {
  static const std::vector<Setting> rows = [] {
    std::vector<Setting> all;
    for (auto&& part : {work_settings(), server_settings(), fleet_settings()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    MUSTER_CHECK(all.size() == kSettingCount);
    return all;
  }();
  return rows;
}

}  // namespace

std::span<const Setting> settings() { return schema(); }

const Setting& setting_of(SettingId id) {
  const auto& setting = schema().at(static_cast<std::size_t>(id));
  MUSTER_CHECK(setting.id == id);
  return setting;
}

std::string shown_value(const Setting& setting, std::string_view value) {
  return setting.is_hidden ? "(set)" : std::string(value);
}

// A walk over the table: with a few dozen rows it needs no index.
const Setting* find_setting(std::string_view name) {
  for (const auto& setting : schema()) {
    const auto& aliases = setting.aliases;
    if (setting.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end()) {
      return &setting;
    }
  }
  return nullptr;
}

// Aliases too, so that a mistyped alias leads to a name that exists.
std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const auto& setting : schema()) names.emplace_back(setting.name);
  for (const auto& setting : schema()) {
    names.insert(names.end(), setting.aliases.begin(), setting.aliases.end());
  }
  return names;
}

std::optional<std::string> nearest_setting(std::string_view name) {
  for (const auto& [theirs, id] : kNamesOfOthers) {
    if (theirs == name) return std::string(setting_of(id).name);
  }
  return nearest_name(name, setting_names());
}

// One name gets a full sentence; of several, each only its nearest name, or the message would be
// unreadable.
std::string unknown_settings_text(std::span<const std::string> names) {
  constexpr std::string_view kWhereToLook = "`muster config` lists those there are";
  if (names.size() == 1) {
    if (const auto sentence = said_otherwise(names.front())) {
      return fmt::format("unknown setting: {}; {}", names.front(), *sentence);
    }
    const auto nearest = nearest_setting(names.front());
    return nearest ? fmt::format("unknown setting: {}; did you mean {}?", names.front(), *nearest)
                   : fmt::format("unknown setting: {}; {}", names.front(), kWhereToLook);
  }
  std::vector<std::string> parts;
  for (const auto& name : names) {
    const auto nearest = nearest_setting(name);
    parts.push_back(nearest ? fmt::format("{} (did you mean {}?)", name, *nearest) : name);
  }
  return fmt::format("unknown settings: {}; {}", fmt::join(parts, ", "), kWhereToLook);
}

std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string variable_of(std::string_view name) {
  std::string variable = "MUSTER_";
  for (const char c : name) {
    variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

}  // namespace muster
