#include "cli/help.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "base/build_info.h"
#include "cli/arguments.h"
#include "cli/flag_text.h"
#include "config/schema.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kTextColumn = 26;  // where the explanation of a flag begins

// `head`, which ends at `indent`, and the words of `text` behind it; each line begins there.
std::string wrapped(std::string head, const std::string& text, std::size_t indent) {
  auto out = std::move(head);
  std::size_t column = indent;
  bool is_first = true;
  std::istringstream words(text);
  for (std::string word; words >> word; is_first = false) {
    const auto size = display_width(word);
    if (!is_first && column + 1 + size > kWidth) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (!is_first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += size;
  }
  return out + "\n";
}

// "  --flag VALUE           words that are wrapped at the right margin".
std::string entry(const FlagText& flag) {
  auto begin = fmt::format("  {}", flag.head);
  const auto size = display_width(begin);
  if (size + 2 > kTextColumn) {
    begin += '\n';
    begin.append(kTextColumn, ' ');
  } else {
    begin.append(kTextColumn - size, ' ');
  }
  return wrapped(std::move(begin), flag.text, kTextColumn);
}

}  // namespace

std::string general_help(std::span<const Command> commands) {
  std::string out = fmt::format(
      "muster {}: runs AI work on every device of this machine.\n\n"
      "usage: muster COMMAND ...\n\n",
      version());
  for (const auto& command : commands) {
    out += fmt::format("  {:<12}{}\n", command.spec.name, command.spec.summary);
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
      "  muster pull sentence-transformers/all-MiniLM-L6-v2\n"
      "  muster embed all-MiniLM-L6-v2 notes.txt -o notes.npy\n"
      "  muster search notes.npy \"where did we leave the keys?\"\n"
      "  muster devices\n";
  return out;
}

std::string command_help(const CommandSpec& spec) {
  auto out = fmt::format("muster {}: {}\n\n", spec.name, spec.summary);
  auto usage = fmt::format("usage: muster {}{}", spec.name, spec.usage.empty() ? "" : " ");
  const auto indent = usage.size();
  out += wrapped(std::move(usage), spec.usage, indent);
  for (const auto& group : spec.groups) {
    out += fmt::format("\n{}:\n", group.title);
    for (const auto& flag : group.flags) out += entry(flag_text(flag));
    for (const auto id : group.settings) out += entry(flag_text(setting_of(id)));
  }
  out += "\nAlways:\n";
  for (const auto& flag : common_flags()) out += entry(flag_text(flag));
  if (!spec.examples.empty()) out += "\nexamples:\n" + spec.examples;
  return out;
}

}  // namespace muster
