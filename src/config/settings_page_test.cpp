#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "config/foreign_names.h"
#include "config/schema.h"
#include "config/values.h"

namespace muster {
namespace {

// The tables of docs/settings.md, made from the tables of the code. The test says where it has put
// what the page should be.

std::string decoder_words(const Setting& setting) {
  if (setting.decoder_choices.empty()) return "";
  return fmt::format("; models that generate also {}", fmt::join(setting.decoder_choices, ", "));
}

// The bounds of a size or a time as its values are written.
std::string range_of(const Setting& setting, std::string_view unit) {
  const auto bound = [&](std::uint64_t value) {
    const auto text = check_value(setting, fmt::format("{}{}", value, unit), setting.name);
    return text ? *text : text.error().message;
  };
  return fmt::format("{} to {}", bound(setting.least), bound(setting.most));
}

std::string kind_of(const Setting& setting) {
  switch (setting.type) {
    case SettingType::Text:
      return "text";
    case SettingType::Count:
      return fmt::format("{} to {}", setting.least, setting.most);
    case SettingType::Switch:
      return "true, false";
    case SettingType::Choice:
      return fmt::format("{}{}", fmt::join(setting.choices, ", "), decoder_words(setting));
    case SettingType::Time:
      return range_of(setting, "ms");
    case SettingType::Bytes:
      return range_of(setting, "");
    case SettingType::Fraction:
      return "share";
    case SettingType::Map:
      return "map";
    case SettingType::Files:
      return "files";
    case SettingType::Models:
      return "models";
  }
  return "";
}

std::string_view live_word(const Setting& setting) {
  if (!setting.is_live) return "";
  return setting.is_host_only ? "SIGHUP" : "yes";
}

std::string settings_table() {
  std::string text =
      "| setting | value | without it | live | what it is |\n|---|---|---|---|---|\n";
  for (const auto& setting : settings()) {
    const auto name = setting.aliases.empty()
                          ? fmt::format("`{}`", setting.name)
                          : fmt::format("`{}`, `{}`", setting.name, setting.aliases.front());
    const auto fallback = setting.default_value.empty()
                              ? std::string(setting.default_note)
                              : fmt::format("`{}`", setting.default_value);
    text += fmt::format("| {} | {} | {} | {} | {} |\n", name, kind_of(setting), fallback,
                        live_word(setting), setting.help);
  }
  return text;
}

std::string words_of(const ForeignName& row) {
  std::string text;
  for (const auto& word : row.words) {
    if (!text.empty()) text += "; ";
    text += fmt::format("`{}`: ", word.theirs);
    if (!word.is_met) {
      text += fmt::format("a warning, {}", row.reason);
    } else if (word.ours.empty()) {
      text += "as it is anyhow";
    } else {
      text += fmt::format("`{}: {}`", setting_of(*row.setting).name, word.ours);
    }
  }
  return text;
}

std::string meaning_of(const ForeignName& row) {
  const auto name = row.setting ? setting_of(*row.setting).name : std::string_view{};
  switch (row.use) {
    case ForeignUse::Value:
      return fmt::format("`{}`{}{}", name, row.words.empty() ? "" : "; ", words_of(row));
    case ForeignUse::Word:
      return words_of(row);
    case ForeignUse::Percent:
      return fmt::format("`{}`, in percent", name);
    case ForeignUse::Seconds:
      return fmt::format("`{}`, in seconds", name);
    case ForeignUse::GpuIds:
      return fmt::format("`{}`: `0,2` is `cuda:0,cuda:2`", name);
    case ForeignUse::GpuCount:
      return fmt::format("`{}`: `2` is `2xcuda`, `0` is `auto`", name);
    case ForeignUse::PrimaryGpu:
      return fmt::format("`{}`: the first of them", name);
    case ForeignUse::SecondaryGpus:
      return fmt::format("`{}`: the others; GPU_COUNT must then fit", name);
    case ForeignUse::Unmet:
      break;
  }
  return fmt::format("a warning: {}", row.reason);
}

std::string foreign_table() {
  std::string text = "| variable | what it does |\n|---|---|\n";
  for (const auto& row : foreign_names()) {
    text += fmt::format("| `{}` | {} |\n", row.name, meaning_of(row));
  }
  return text;
}

// `page` with the table under each heading replaced.
std::string with_table(const std::string& page, const std::string& heading,
                       const std::string& table) {
  const auto begin = page.find("| ", page.find(heading));
  if (page.find(heading) == std::string::npos || begin == std::string::npos) return page;
  const auto end = page.find("\n\n", begin);
  return page.substr(0, begin) + table +
         (end == std::string::npos ? std::string() : page.substr(end + 1));
}

TEST(SettingsPage, SaysWhatTheTablesOfTheCodeSay) {
  std::ifstream file(std::string(MUSTER_SOURCE_DIR) + "/docs/settings.md");
  std::ostringstream text;
  text << file.rdbuf();
  const auto page = text.str();
  ASSERT_FALSE(page.empty());
  auto wanted = with_table(page, "## Settings", settings_table());
  wanted = with_table(wanted, "## Variables of other programs", foreign_table());
  if (wanted == page) return;
  const auto place = std::string(MUSTER_BINARY_DIR) + "/settings.md";
  std::ofstream(place) << wanted;
  FAIL() << "docs/settings.md is not what the tables say; the right one is " << place;
}

}  // namespace
}  // namespace muster
