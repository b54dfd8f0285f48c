#include "cli/help.h"

#include <gtest/gtest.h>

#include <sstream>

#include "terminal/text_width.h"

namespace muster {
namespace {

std::vector<Command> all_commands() {
  std::vector<Command> all;
  all.push_back(embed_command());
  all.push_back(search_command());
  all.push_back(tokenize_command());
  all.push_back(devices_command());
  all.push_back(serve_command());
  all.push_back(config_command());
  return all;
}

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
  EXPECT_NE(text.find("  --batch-tokens N        tokens that one batch may have (4096)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("--[no-]normalize"), std::string::npos);
  EXPECT_NE(text.find("  -o, --out OUT"), std::string::npos);
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
