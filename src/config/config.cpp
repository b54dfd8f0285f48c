// Merges four sources, weakest first: defaults, file, environment, flags. Each value keeps where it
// came from, because the first question about a surprising setting is who set it.
// A value is checked when it is merged, under the name by which its source calls it, so a
// message points at the line, variable or flag to change. Two names for one setting may stand
// side by side within a source only if they agree.

#include "config/config.h"

#include <fmt/format.h>

#include <charconv>

#include "base/check.h"
#include "base/file.h"
#include "config/foreign_names.h"
#include "config/values.h"

namespace muster {
namespace {

constexpr std::string_view kFileName = "muster.yaml";

// A file of settings that is longer is not one; no reason to read a disk image to the end.
constexpr std::uint64_t kFileSizeMax = 1 << 20;

std::optional<std::string> variable(const std::vector<std::string>& environment,
                                    std::string_view name) {
  for (const auto& entry : environment) {
    if (entry.size() > name.size() + 1 && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

// The file that counts: named by flag, by variable, or lying in the working folder.
std::optional<std::filesystem::path> config_file(const ConfigSources& sources) {
  if (sources.file) return sources.file;
  if (auto named = variable(sources.environment, kConfigFileVariable))
    return std::filesystem::path(*named);
  std::error_code ignored;
  auto here = sources.working_folder / kFileName;
  if (std::filesystem::exists(here, ignored)) return here;
  return std::nullopt;
}

}  // namespace

// A variable of another program is shown as what it is to the user: the environment.
std::string_view origin_name(Origin origin) {
  switch (origin) {
    case Origin::Default:
      return "default";
    case Origin::File:
      return "file";
    case Origin::Foreign:
    case Origin::Environment:
      return "environment";
    case Origin::Flag:
      return "flag";
    case Origin::Request:
      return "request";
  }
  return "?";
}

// The order of the merges is the order of precedence; names of other programs count for less
// than our own variables.
Result<Config> Config::load(const ConfigSources& sources) {
  Config config;
  for (const auto& setting : settings()) {
    if (!setting.default_value.empty()) {
      config.values_[static_cast<std::size_t>(setting.id)].value = setting.default_value;
    }
  }
  config.file_ = config_file(sources);
  if (config.file_) {
    const auto text = MUSTER_TRY(read_file(*config.file_, kFileSizeMax));
    const auto given = MUSTER_TRY(parse_config_yaml(text, config.file_->string()));
    MUSTER_TRY(config.merge(Origin::File, given));
  }
  if (sources.reads_foreign_names) {
    auto foreign = MUSTER_TRY(read_foreign_environment(sources.environment));
    MUSTER_TRY(config.merge(Origin::Foreign, foreign.given));
    config.warnings_ = std::move(foreign.warnings);
  }
  const auto environment = MUSTER_TRY(read_environment(sources.environment));
  MUSTER_TRY(config.merge(Origin::Environment, environment.given));
  config.warnings_.insert(config.warnings_.end(), environment.warnings.begin(),
                          environment.warnings.end());
  MUSTER_TRY(config.merge(Origin::Flag, sources.flags));
  return config;
}

Status Config::merge(Origin origin, const std::vector<GivenValue>& given) {
  for (const auto& one : given) {
    const auto& setting = setting_of(one.id);
    // A flag and a variable name the setting themselves; a line of a file does not.
    const auto subject =
        origin == Origin::File ? fmt::format("{}: {}", one.place, setting.name) : one.place;
    auto checked = MUSTER_TRY(check_value(setting, one.value, subject));
    auto& effective = values_[static_cast<std::size_t>(one.id)];
    // Within one origin nothing says which of two names should win.
    const bool is_second = effective.origin == origin && !effective.place.empty();
    if (is_second && effective.value != checked) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{} and {} set the same thing and disagree: {} and {}",
                               effective.place, one.place, shown_value(setting, *effective.value),
                               shown_value(setting, checked))};
    }
    effective = {std::move(checked), origin, one.place};
  }
  return Done{};
}

// The accessors parse again what `merge` has checked, so parsing cannot fail here. A wrong type
// is a fault of the caller.
std::optional<std::uint32_t> Config::count(SettingId id) const {
  MUSTER_CHECK(setting_of(id).type == SettingType::Count);
  const auto& value = at(id).value;
  if (!value) return std::nullopt;
  std::uint32_t number = 0;
  std::from_chars(value->data(), value->data() + value->size(), number);
  return number;
}

std::optional<bool> Config::is_on(SettingId id) const {
  MUSTER_CHECK(setting_of(id).type == SettingType::Switch);
  const auto& value = at(id).value;
  return value ? std::optional(*value == "true") : std::nullopt;
}

std::optional<Duration> Config::time(SettingId id) const {
  MUSTER_CHECK(setting_of(id).type == SettingType::Time);
  const auto& value = at(id).value;
  if (!value) return std::nullopt;
  return std::chrono::milliseconds(parse_milliseconds(*value).value_or(0));
}

std::optional<std::uint64_t> Config::bytes(SettingId id) const {
  MUSTER_CHECK(setting_of(id).type == SettingType::Bytes);
  const auto& value = at(id).value;
  return value ? parse_bytes(*value) : std::nullopt;
}

std::optional<double> Config::fraction(SettingId id) const {
  MUSTER_CHECK(setting_of(id).type == SettingType::Fraction);
  const auto& value = at(id).value;
  return value ? parse_fraction(*value) : std::nullopt;
}

TextPairs Config::map(SettingId id) const {
  MUSTER_CHECK(setting_of(id).type == SettingType::Map);
  const auto& value = at(id).value;
  if (!value) return {};
  auto pairs = parse_map(*value, setting_of(id).name);
  MUSTER_CHECK(pairs);
  return std::move(*pairs);
}

TextPairs Config::files(SettingId id) const {
  MUSTER_CHECK(setting_of(id).type == SettingType::Files);
  const auto& value = at(id).value;
  if (!value) return {};
  auto pairs = parse_named_files(*value, setting_of(id).name);
  MUSTER_CHECK(pairs);
  return std::move(*pairs);
}

std::vector<ModelEntry> Config::models(SettingId id) const {
  MUSTER_CHECK(setting_of(id).type == SettingType::Models);
  const auto& value = at(id).value;
  if (!value) return {};
  auto entries = parse_model_entries(*value, setting_of(id).name);
  MUSTER_CHECK(entries);
  return std::move(*entries);
}

// For defaults that depend on the machine; it must not hide a value that was given.
void Config::set_default(SettingId id, std::string value, std::string place) {
  auto& effective = values_[static_cast<std::size_t>(id)];
  MUSTER_CHECK(!effective.value);
  effective = {std::move(value), Origin::Default, std::move(place)};
}

void Config::set(SettingId id, EffectiveValue value) {
  values_[static_cast<std::size_t>(id)] = std::move(value);
}

}  // namespace muster
