// One flag in words, the same for every place that explains it.
#include "cli/flag_text.h"

#include <fmt/format.h>

namespace muster {

FlagText flag_text(const Setting& setting) {
  auto head = flag_of(setting.name);
  if (setting.type == SettingType::Switch) {
    head.insert(2, "[no-]");
  } else {
    head += fmt::format(" {}", setting.value_name);
  }
  std::string text(setting.help);
  if (!setting.choices.empty()) text += fmt::format(": {}", fmt::join(setting.choices, ", "));
  const auto fallback =
      setting.default_value.empty() ? setting.default_note : setting.default_value;
  text += fmt::format(" (default: {})", fallback);
  return {std::move(head), std::move(text)};
}

FlagText flag_text(const RunFlag& flag) {
  auto head =
      flag.short_name.empty() ? flag.name : fmt::format("{}, {}", flag.short_name, flag.name);
  if (!flag.value_name.empty()) head += fmt::format(" {}", flag.value_name);
  return {std::move(head), flag.help};
}

}  // namespace muster
