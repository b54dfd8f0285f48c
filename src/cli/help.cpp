#include "cli/help.h"

#include <fmt/format.h>

#include <sstream>

#include "base/build_info.h"
#include "config/schema.h"

namespace muster {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kTextColumn = 26;  // where the explanation of a flag begins

// "  --flag VALUE           words that are wrapped at the right margin".
std::string entry(const std::string& head, const std::string& text) {
  auto out = fmt::format("  {}", head);
  std::size_t column = out.size();
  const auto next_line = [&] {
    out += '\n';
    out.append(kTextColumn, ' ');
    column = kTextColumn;
  };
  if (column + 2 > kTextColumn) {
    next_line();
  } else {
    out.append(kTextColumn - column, ' ');
    column = kTextColumn;
  }
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool is_first = column == kTextColumn;
    if (!is_first && column + 1 + word.size() > kWidth) {
      next_line();
    } else if (!is_first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + "\n";
}

std::string setting_entry(const Setting& setting) {
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
  if (setting.type != SettingType::Switch || setting.default_value.empty()) {
    text += fmt::format(" ({})", fallback);
  }
  return entry(head, text);
}

std::string flag_entry(const RunFlag& flag) {
  auto head =
      flag.short_name.empty() ? flag.name : fmt::format("{}, {}", flag.short_name, flag.name);
  if (!flag.value_name.empty()) head += fmt::format(" {}", flag.value_name);
  return entry(head, flag.help);
}

}  // namespace

std::string general_help(std::span<const Command> commands) {
  std::string out = fmt::format(
      "muster {}: runs AI work on every device of this machine.\n\n"
      "usage: muster COMMAND ...\n\n",
      version());
  for (const auto& command : commands) {
    out += fmt::format("  {:<10}{}\n", command.spec.name, command.spec.summary);
  }
  out +=
      "\n"
      "muster COMMAND --help explains a command. Results go to standard output,\n"
      "everything else to standard error; --json is for programs.\n"
      "\n"
      "Settings come from flags, then variables (MUSTER_DEVICES), then muster.yaml;\n"
      "muster config shows every one and where it came from.\n"
      "\n"
      "examples:\n"
      "  muster embed all-MiniLM-L6-v2 notes.txt -o notes.npy\n"
      "  muster search notes.npy \"where did we leave the keys?\"\n"
      "  muster devices\n";
  return out;
}

std::string command_help(const CommandSpec& spec) {
  std::string out = fmt::format("muster {}: {}\n\nusage: muster {}{}{}\n", spec.name, spec.summary,
                                spec.name, spec.usage.empty() ? "" : " ", spec.usage);
  for (const auto& group : spec.groups) {
    out += fmt::format("\n{}:\n", group.title);
    for (const auto& flag : group.flags) out += flag_entry(flag);
    for (const auto id : group.settings) out += setting_entry(setting_of(id));
  }
  out += "\nAlways:\n";
  out += entry("--config FILE", "settings from this file instead of ./muster.yaml");
  out += entry("-h, --help", "this text");
  if (!spec.examples.empty()) out += "\nexamples:\n" + spec.examples;
  return out;
}

}  // namespace muster
