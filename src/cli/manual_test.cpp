#include "cli/manual.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/flag_text.h"
#include "config/schema.h"

namespace muster {
namespace {

TEST(Manual, HasEveryCommandAndFlag) {
  const auto page = manual_page(all_commands());
  for (const auto& command : all_commands()) {
    EXPECT_NE(page.find(".SS \"muster " + command.spec.name + "\"\n"), std::string::npos);
    for (const auto& group : command.spec.groups) {
      for (const auto& flag : group.flags) {
        auto name = flag.name;
        for (std::size_t at = 0; (at = name.find('-', at)) != name.npos; at += 2) {
          name.replace(at, 1, "\\-");
        }
        EXPECT_NE(page.find(name), std::string::npos) << flag.name;
      }
    }
  }
  EXPECT_NE(page.find("\\fB\\-\\-batch\\-tokens N\\fR\ntokens that one batch may have (default: "
                      "4096)\n"),
            std::string::npos);
}

// What a roff program would take for something of its own.
TEST(Manual, TakesEveryTextAsText) {
  Command command;
  command.spec = {.name = "odd",
                  .summary = "it's a \\ and a `word` …",
                  .usage = "",
                  .groups = {},
                  .examples = "  .first\n  'second\n\n  '.third\n"};
  const auto page = manual_page(std::span(&command, 1));
  EXPECT_NE(page.find("it\\(aqs a \\e and a \\(gaword\\(ga \\[u2026].\n"), std::string::npos)
      << page;
  EXPECT_NE(page.find(".EX\n  .first\n  \\(aqsecond\n.EE\n.PP\n\\&\\(aq.third\n"),
            std::string::npos)
      << page;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('.')) continue;
    const auto request = line.substr(1, line.find(' ') - 1);
    EXPECT_TRUE(request == "TH" || request == "SH" || request == "SS" || request == "TP" ||
                request == "PP" || request == "EX" || request == "EE")
        << line;
  }
}

}  // namespace
}  // namespace muster
