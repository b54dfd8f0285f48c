#include "cli/help.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <vector>

#include "base/text.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

constexpr TerminalInfo kTerminal{.is_terminal = true, .width = 80};
constexpr TerminalInfo kPipe{.width = kUnboundedWidth};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.insert(word);
  return words;
}

std::vector<std::string> all_texts(const TerminalInfo& terminal) {
  std::vector<std::string> texts{general_help(all_commands(), terminal)};
  for (const auto& command : all_commands()) {
    texts.push_back(command_help(command.spec, terminal));
    if (command.spec.of_verb == nullptr) continue;
    for (const auto& verb : command.spec.verbs) {
      texts.push_back(command_help(command.spec.of_verb(verb.name), terminal));
    }
  }
  return texts;
}

constexpr std::size_t kUsualWidth = 80;

// Whether a line ends in a word of the shell that fits nowhere: nothing is broken inside. Only
// below the usual width, at which each word has to fit.
bool ends_unbreakably(std::string_view line, std::size_t width) {
  constexpr std::size_t kTextColumn = 26;
  if (width >= kUsualWidth) return false;
  const auto text = trim(line);
  if (text.starts_with("'") && text.ends_with("'")) return true;
  return display_width(text.substr(text.rfind(' ') + 1)) + kTextColumn > width;
}

TEST(Help, FitsTheTerminalWithWholeWords) {
  const auto whole = all_texts(kPipe);
  for (const std::size_t width : {50U, 60U, 80U, 120U, 200U}) {
    const auto narrow = all_texts({.is_terminal = true, .width = width});
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      for (const auto& line : lines_of(narrow[i])) {
        EXPECT_TRUE(display_width(line) <= width || ends_unbreakably(line, width)) << line;
      }
      const auto words = words_of(whole[i]);
      for (const auto& word : words_of(narrow[i])) {
        EXPECT_TRUE(words.contains(word) || word == "\\" || word == "#") << width << " " << word;
      }
    }
  }
}

TEST(Help, IsNotWrappedInAPipe) {
  const auto text = command_help(embed_command().spec, kPipe);
  EXPECT_NE(text.find("\n  --out"), 0U);
  EXPECT_NE(text.find("MODEL is a folder in Hugging Face layout or a name in the local hub cache, "
                      "which muster pull fills. INPUT is .txt"),
            std::string::npos);
}

TEST(Help, ColoursHeadingsAndFlagsWhereAsked) {
  auto terminal = kTerminal;
  EXPECT_EQ(command_help(plan_command().spec, terminal).find('\x1b'), std::string::npos);
  terminal.has_color = true;
  const auto text = command_help(plan_command().spec, terminal);
  EXPECT_NE(text.find("\n\x1b[0;1;38;5;74musage:\x1b[0m muster plan"), std::string::npos) << text;
  EXPECT_NE(text.find("\n\x1b[0;38;5;74m  -h, --help\x1b[0m"), std::string::npos) << text;
}

TEST(Help, NamesEveryCommand) {
  const auto text = general_help(all_commands(), kTerminal);
  for (const auto& command : all_commands()) {
    EXPECT_NE(text.find("\n  " + command.spec.name + " "), std::string::npos) << command.spec.name;
    EXPECT_FALSE(command.spec.examples.empty());
  }
}

TEST(Help, ShowsFlagsWithTheirDefaults) {
  const auto text = command_help(embed_command().spec, kTerminal);
  EXPECT_NE(text.find("usage: muster embed MODEL INPUT... -o OUT\n"), std::string::npos);
  EXPECT_NE(text.find("  --batch-tokens N        tokens that one batch may have (default: 4096)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("--[no-]normalize"), std::string::npos);
  EXPECT_NE(text.find("  -o, --out OUT"), std::string::npos);
}

TEST(Help, HasOneWayToWriteADefault) {
  for (const auto& command : all_commands()) {
    for (const auto& group : command.spec.groups) {
      for (const auto& flag : group.flags) {
        // "(1s)" at the end of a help is a default without the word.
        const auto begin = flag.help.rfind('(');
        const bool is_value = flag.help.ends_with(')') && begin + 1 < flag.help.size() &&
                              flag.help[begin + 1] >= '0' && flag.help[begin + 1] <= '9';
        EXPECT_FALSE(is_value) << command.spec.name << " " << flag.name << ": " << flag.help;
      }
    }
  }
}

TEST(Help, WrapsALongUsage) {
  CommandSpec spec{.name = "deploy", .summary = "a summary"};
  spec.usage =
      "container --api API --model MODEL --devices LIST [-- WORDS] | status [NAME] | logs NAME | "
      "stop NAME";
  EXPECT_NE(
      command_help(spec, kTerminal)
          .find("usage: muster deploy container --api API --model MODEL --devices LIST [-- WORDS]\n"
                "                     | status [NAME] | logs NAME | stop NAME\n"),
      std::string::npos)
      << command_help(spec, kTerminal);
}

TEST(Help, EverySettingIsAFlagOfSomeCommandThatReadsIt) {
  // `config` shows them all, so it does not count.
  for (const auto& setting : settings()) {
    bool is_read = false;
    for (const auto& command : all_commands()) {
      if (command.spec.name == "config") continue;
      for (const auto& group : command.spec.groups) {
        for (const auto id : group.settings) is_read = is_read || id == setting.id;
      }
    }
    EXPECT_TRUE(is_read) << setting.name;
  }
}

}  // namespace
}  // namespace muster
