// The JSON of a setting goes by the type of the setting.

#include "cli/setting_json.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json setting_json(const Config& config, const Setting& setting) {
  const auto& value = config.at(setting.id).value;
  if (!value) return nullptr;
  if (setting.is_hidden) return shown_value(setting, *value);
  switch (setting.type) {
    case SettingType::Count:
      return *config.count(setting.id);
    case SettingType::Switch:
      return *config.is_on(setting.id);
    case SettingType::Fraction:
      return *config.fraction(setting.id);
    case SettingType::Map: {
      Json map = Json::object();
      for (const auto& [key, text] : config.map(setting.id)) map[key] = text;
      return map;
    }
    case SettingType::Files: {
      Json files = Json::object();
      for (const auto& [name, path] : config.files(setting.id)) files[name] = path;
      return files;
    }
    case SettingType::Models:
      return Json::parse(*value);
    case SettingType::Text:
    case SettingType::Choice:
    case SettingType::Time:
    case SettingType::Bytes:
      break;
  }
  return *value;
}

}  // namespace muster
