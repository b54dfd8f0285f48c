// Settings of a running server are values that are replaced as a whole: a change is made on a copy,
// checked, and takes effect only when all of it is good. A request may not change what names a
// place on the host or says who is let in; a reload of the file may, but it never takes keys or
// certificates away from a server that has them. A setting that is not live is refused when it
// would change, and accepted when it says what is so already.

#include "cli/live_settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/serve_options.h"
#include "cli/setting_json.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// A word of a log line; a list of models or an expression may be long.
std::string shown(const Setting& setting, const EffectiveValue& effective) {
  constexpr std::size_t kShownMost = 120;
  if (!effective.value) return "not set";
  if (setting.is_secret) return "(set)";
  if (effective.value->size() <= kShownMost) return *effective.value;
  return effective.value->substr(0, kShownMost) + "...";
}

// All unknown ones at once, so that a body of another program's names is answered in one go.
Status check_names(const std::map<std::string, std::string>& values) {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : values) {
    if (find_setting(name) == nullptr) unknown.push_back(name);
  }
  if (unknown.empty()) return Done{};
  return Error{ErrorKind::InvalidArgument, unknown_settings_text(unknown)};
}

// Where a setting may be set that no request sets.
Error of_the_host(const Setting& setting) {
  const auto name = setting.name;
  return Error{
      ErrorKind::InvalidArgument,
      fmt::format("{0} cannot be set over HTTP, because it names a place of the server's "
                  "machine or says who is let in: {1} {0} in the server's configuration "
                  "file{2}, or start the server with {3} or {4}",
                  name, setting.is_live ? "change" : "set",
                  setting.is_live ? " and send it SIGHUP" : "", variable_of(name), flag_of(name))};
}

// Of a server that lets in those with a key or a certificate, a line that is gone from its file
// must not let in everybody.
Status check_doors(const Config& now, const Config& wanted) {
  using enum SettingId;
  for (const auto id : {KeysFile, ApiKey, TlsClientCa, TlsCert}) {
    const auto name = setting_of(id).name;
    if (now.text(id) && !wanted.text(id)) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{0} is no longer set: the server goes on with the one it has; to "
                               "run without {0}, restart it",
                               name)};
    }
  }
  if (!now.text(TlsCert) && wanted.text(TlsCert)) {
    return Error{ErrorKind::InvalidArgument, "tls_cert needs a restart: the server has no TLS"};
  }
  return Done{};
}

Error needs_restart(const Setting& setting, const EffectiveValue& now,
                    const EffectiveValue& wanted) {
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} needs a restart: it is {} and was to become {}", setting.name,
                           now.value ? shown_value(setting, *now.value) : "not set",
                           wanted.value ? shown_value(setting, *wanted.value) : "not set")};
}

}  // namespace

// Secrets are hidden from everybody; places of the host only from those who are not its
// administrators.
std::string serve_config_json(const Config& config, bool shows_places) {
  Json json = Json::object();
  for (const auto& setting : settings()) {
    const auto& effective = config.at(setting.id);
    const bool is_hidden =
        effective.value && (setting.is_secret || (setting.is_host_only && !shows_places));
    json[std::string(setting.name)] = {
        {"value", is_hidden ? Json("(set)") : setting_json(config, setting)},
        {"source", origin_name(effective.origin)},
        {"place", effective.place.empty() || !shows_places ? Json(nullptr) : Json(effective.place)},
        {"is_live", setting.is_live}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Aliases of one setting may come in one body; they are taken when they agree.
Result<LiveSettings> LiveSettings::changed(const std::map<std::string, std::string>& values) const {
  MUSTER_TRY(check_names(values));
  auto config = config_;
  std::map<SettingId, std::string> seen;
  for (const auto& [name, value] : values) {
    const auto* setting = find_setting(name);
    if (setting->is_host_only) return of_the_host(*setting);
    auto checked = MUSTER_TRY(check_value(*setting, value, name));
    const auto [before, is_new] = seen.emplace(setting->id, name);
    if (!is_new && config.at(setting->id).value != checked) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{} and {} set the same thing and disagree", before->second, name)};
    }
    config.set(setting->id, {std::move(checked), Origin::Request, ""});
  }
  MUSTER_TRY(check_live(config));
  auto options = options_;
  MUSTER_TRY(apply_request_settings(config, options));
  return LiveSettings(std::move(config), std::move(options));
}

// Flags and variables are those of the start; only files can have changed.
Result<LiveSettings> LiveSettings::reloaded(const ConfigSources& sources) const {
  auto config = MUSTER_TRY(Config::load(sources));
  MUSTER_TRY(check_doors(config_, config));
  MUSTER_TRY(check_live(config));
  auto options = options_;
  MUSTER_TRY(apply_live_settings(config, options));
  return LiveSettings(std::move(config), std::move(options));
}

std::string LiveSettings::changes_since(const LiveSettings& before) const {
  std::string text;
  for (const auto& setting : settings()) {
    const auto& was = before.config_.at(setting.id);
    const auto& is = config_.at(setting.id);
    if (was.value == is.value) continue;
    text += fmt::format("{}{} from {} to {}", text.empty() ? "" : ", ", setting.name,
                        shown(setting, was), shown(setting, is));
  }
  return text;
}

Status LiveSettings::check_live(Config& config) const {
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
  return Done{};
}

}  // namespace muster
