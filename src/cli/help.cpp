// Help is made from the same specs that arguments are parsed by, so it cannot name a flag that is
// not there. On a narrow terminal the explanation of a flag goes below it: two columns of a few
// words each cannot be read.
#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/build_info.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/flag_text.h"
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
std::string entry(const FlagText& flag, const TerminalInfo& terminal) {
  const auto column = terminal.width < kNarrowWidth ? kNarrowTextColumn : kTextColumn;
  const auto head = "  " + flag.head;
  const bool has_room = display_width(head) + 2 <= column;
  const auto lines = wrapped(
      flag.text,
      {.width = terminal.width, .head = padded(has_room ? head : "", column), .indent = column});
  if (!has_room) return styled(head, kFlagStyle, terminal.has_color) + "\n" + lines;
  return styled_start(lines, head.size(), kFlagStyle, terminal.has_color);
}

}  // namespace

std::string general_help(std::span<const Command> commands, const TerminalInfo& terminal) {
  const auto width = terminal.width;
  auto out =
      wrapped(fmt::format("muster {}: runs AI work on every device of this machine.", version()),
              {.width = width});
  out += fmt::format("\n{} muster COMMAND ...\n\n", heading("usage:", terminal));
  constexpr std::size_t kSummaryColumn = 14;
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
                   "  muster pull sentence-transformers/all-MiniLM-L6-v2\n"
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
    for (const auto& flag : group.flags) out += entry(flag_text(flag), terminal);
    for (const auto id : group.settings) out += entry(flag_text(setting_of(id)), terminal);
  }
  out += "\n" + heading("Always:", terminal) + "\n";
  for (const auto& flag : common_flags()) out += entry(flag_text(flag), terminal);
  if (spec.examples.empty()) return out;
  return out + "\n" + heading("examples:", terminal) + "\n" + examples_text(spec.examples, width);
}

}  // namespace muster
