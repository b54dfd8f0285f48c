#include "config/schema.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/check.h"
#include "config/schema_rows.h"

namespace muster {
namespace {

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

const Setting* find_setting(std::string_view name) {
  for (const auto& setting : schema()) {
    const auto& aliases = setting.aliases;
    if (setting.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end()) {
      return &setting;
    }
  }
  return nullptr;
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const auto& setting : schema()) names.emplace_back(setting.name);
  for (const auto& setting : schema()) {
    names.insert(names.end(), setting.aliases.begin(), setting.aliases.end());
  }
  return names;
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
