#include "cli/live_settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/serve_options.h"
#include "cli/setting_json.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

Error needs_restart(const Setting& setting, const EffectiveValue& now,
                    const EffectiveValue& wanted) {
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} needs a restart: it is {} and was to become {}", setting.name,
                           now.value.value_or("not set"), wanted.value.value_or("not set"))};
}

}  // namespace

std::string serve_config_json(const Config& config) {
  Json json = Json::object();
  for (const auto& setting : settings()) {
    const auto& effective = config.at(setting.id);
    const bool is_hidden = setting.is_secret && effective.value;
    json[std::string(setting.name)] = {
        {"value", is_hidden ? Json("(set)") : setting_json(config, setting)},
        {"source", origin_name(effective.origin)},
        {"place", effective.place.empty() ? Json(nullptr) : Json(effective.place)},
        {"is_live", setting.is_live}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<LiveSettings> LiveSettings::changed(const std::map<std::string, std::string>& values) const {
  auto config = config_;
  std::map<SettingId, std::string> seen;
  for (const auto& [name, value] : values) {
    const auto* setting = find_setting(name);
    if (setting == nullptr) {
      const auto nearest = nearest_name(name, setting_names());
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("unknown setting: {}{}", name,
                               nearest ? fmt::format("; did you mean {}?", *nearest) : "")};
    }
    auto checked = MUSTER_TRY(check_value(*setting, value, name));
    const auto [before, is_new] = seen.emplace(setting->id, name);
    if (!is_new && config.at(setting->id).value != checked) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{} and {} set the same thing and disagree", before->second, name)};
    }
    config.set(setting->id, {std::move(checked), Origin::Request, ""});
  }
  return with(std::move(config));
}

Result<LiveSettings> LiveSettings::reloaded(const ConfigSources& sources) const {
  auto config = MUSTER_TRY(Config::load(sources));
  return with(std::move(config));
}

Result<LiveSettings> LiveSettings::with(Config config) const {
  for (const auto& setting : settings()) {
    const auto& now = config_.at(setting.id);
    const auto& wanted = config.at(setting.id);
    if (now.value == wanted.value) {
      // Asking for what is so anyhow changes nothing, not even who asked for it.
      if (wanted.origin == Origin::Request) config.set(setting.id, now);
    } else if (!setting.is_live) {
      return needs_restart(setting, now, wanted);
    }
  }
  auto options = options_;
  MUSTER_TRY(apply_live_settings(config, options));
  return LiveSettings(std::move(config), std::move(options));
}

}  // namespace muster
