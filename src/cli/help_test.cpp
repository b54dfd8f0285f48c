#include "cli/help.h"

#include <gtest/gtest.h>

#include <sstream>

#include "terminal/text_width.h"

namespace muster {
namespace {

void expect_80_columns(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80U) << line;
}

TEST(Help, FitsEightyColumns) {
  expect_80_columns(general_help(all_commands()));
  for (const auto& command : all_commands()) expect_80_columns(command_help(command.spec));
}

TEST(Help, NamesEveryCommand) {
  const auto text = general_help(all_commands());
  for (const auto& command : all_commands()) {
    EXPECT_NE(text.find("\n  " + command.spec.name + " "), std::string::npos) << command.spec.name;
    EXPECT_FALSE(command.spec.examples.empty());
  }
}

TEST(Help, ShowsFlagsWithTheirDefaults) {
  const auto text = command_help(embed_command().spec);
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
  EXPECT_NE(command_help(spec).find(
                "usage: muster deploy container --api API --model MODEL --devices LIST [-- WORDS]\n"
                "                     | status [NAME] | logs NAME | stop NAME\n"),
            std::string::npos)
      << command_help(spec);
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
