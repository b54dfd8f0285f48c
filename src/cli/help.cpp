// Help is made from the same specs that arguments are parsed by, so it cannot name a flag that is
// not there.
#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/build_info.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/help_examples.h"
#include "config/schema.h"
#include "terminal/text_width.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

constexpr std::size_t kTextColumn = 26;   // where the explanation of a flag begins
constexpr std::size_t kNarrowWidth = 60;  // below it, the explanation begins on the next line
constexpr std::size_t kNarrowTextColumn = 6;
constexpr Style kFlagStyle{.role = Role::Accent};

std::string heading(std::string_view text, const TerminalInfo& terminal) {
  return styled(text, kHeading, terminal.has_color);
}

// "  --flag VALUE           words that are wrapped at the right margin".
std::string entry(const std::string& name, const std::string& text, const TerminalInfo& terminal) {
  const auto column = terminal.width < kNarrowWidth ? kNarrowTextColumn : kTextColumn;
  const auto head = "  " + name;
  const bool has_room = display_width(head) + 2 <= column;
  const auto lines = wrapped(
      text,
      {.width = terminal.width, .head = padded(has_room ? head : "", column), .indent = column});
  if (!has_room) return styled(head, kFlagStyle, terminal.has_color) + "\n" + lines;
  return styled_start(lines, head.size(), kFlagStyle, terminal.has_color);
}

std::string setting_entry(const Setting& setting, const TerminalInfo& terminal) {
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
  return entry(head, text, terminal);
}

std::string flag_entry(const RunFlag& flag, const TerminalInfo& terminal) {
  auto head =
      flag.short_name.empty() ? flag.name : fmt::format("{}, {}", flag.short_name, flag.name);
  if (!flag.value_name.empty()) head += fmt::format(" {}", flag.value_name);
  return entry(head, flag.help, terminal);
}

}  // namespace

std::string general_help(std::span<const Command> commands, const TerminalInfo& terminal) {
  const auto width = terminal.width;
  auto out =
      wrapped(fmt::format("muster {}: runs AI work on every device of this machine.", version()),
              {.width = width});
  out += fmt::format("\n{} muster COMMAND ...\n\n", heading("usage:", terminal));
  constexpr std::size_t kSummaryColumn = 12;
  for (const auto& command : commands) {
    const auto head = "  " + command.spec.name;
    const auto lines =
        wrapped(command.spec.summary,
                {.width = width, .head = padded(head, kSummaryColumn), .indent = kSummaryColumn});
    out += styled_start(lines, head.size(), kFlagStyle, terminal.has_color);
  }
  for (const auto* paragraph :
       {"muster COMMAND --help explains a command. Results go to standard output, everything else "
        "to standard error; --json is for programs.",
        "Settings come from flags, then variables (MUSTER_DEVICES), then muster.yaml; muster "
        "config "
        "shows every one and where it came from."}) {
    out += "\n" + wrapped(paragraph, {.width = width});
  }
  out += "\n" + heading("examples:", terminal) + "\n";
  return out + examples_text(
                   "  muster embed all-MiniLM-L6-v2 notes.txt -o notes.npy\n"
                   "  muster search notes.npy \"where did we leave the keys?\"\n"
                   "  muster devices\n",
                   width);
}

std::string command_help(const CommandSpec& spec, const TerminalInfo& terminal) {
  const auto width = terminal.width;
  auto out = wrapped(spec.summary, {.width = width, .head = fmt::format("muster {}: ", spec.name)});
  constexpr std::string_view kUsage = "usage:";
  auto usage = fmt::format("{} muster {}{}", kUsage, spec.name, spec.usage.empty() ? "" : " ");
  const auto lines = wrapped(spec.usage, {.width = width, .head = usage, .indent = usage.size()});
  out += "\n" + styled_start(lines, kUsage.size(), kHeading, terminal.has_color);
  for (const auto& group : spec.groups) {
    out += "\n" + heading(group.title + ":", terminal) + "\n";
    for (const auto& flag : group.flags) out += flag_entry(flag, terminal);
    for (const auto id : group.settings) out += setting_entry(setting_of(id), terminal);
  }
  out += "\n" + heading("Always:", terminal) + "\n";
  for (const auto& flag : common_flags()) out += flag_entry(flag, terminal);
  if (spec.examples.empty()) return out;
  return out + "\n" + heading("examples:", terminal) + "\n" + examples_text(spec.examples, width);
}

}  // namespace muster
