// docs/metrics.md against the tables that the metrics are written from.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "metrics/families.h"

namespace muster {
namespace {

// The rows of the table below a heading, each as its trimmed cells.
std::vector<std::vector<std::string>> table_below(const std::string& heading) {
  std::ifstream file(MUSTER_SOURCE_DIR "/docs/metrics.md");
  std::vector<std::vector<std::string>> rows;
  bool is_here = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) is_here = line == "## " + heading;
    if (!is_here || !line.starts_with("| `")) continue;
    auto cells = split(line.substr(1, line.rfind('|') - 1), '|');
    for (std::string& cell : cells) cell = trim(cell);
    rows.push_back(std::move(cells));
  }
  return rows;
}

std::string in_code(std::string_view text) { return "`" + std::string(text) + "`"; }
std::string or_dash(std::string_view text) { return text.empty() ? "–" : std::string(text); }
std::string tier_word(Tier tier) {
  return tier == Tier::Fast ? "fast" : tier == Tier::Medium ? "medium" : "slow";
}

TEST(Documentation, ListsEveryReadingAsItIsShown) {
  const auto rows = table_below("What is read");
  ASSERT_EQ(rows.size(), kReadingCount);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ReadingInfo& info = reading_table()[i];
    const std::vector<std::string> expected{in_code("muster_" + std::string(info.family)),
                                            info.labels.empty() ? "–" : in_code(info.labels),
                                            info.type == ReadingType::Counter ? "counter" : "gauge",
                                            or_dash(info.unit),
                                            tier_word(info.tier),
                                            in_code(info.name)};
    ASSERT_EQ(rows[i].size(), expected.size() + 1) << info.name;
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), rows[i].begin()))
        << "docs/metrics.md has another row for " << info.name;
    EXPECT_FALSE(rows[i].back().empty()) << info.name << " has no source";
  }
}

TEST(Documentation, ListsEveryFamilyThatIsWorkedOut) {
  const auto rows = table_below("What is worked out");
  const auto families = computed_families();
  ASSERT_EQ(rows.size(), families.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ComputedFamily& family = *families[i];
    const std::vector<std::string> expected{
        in_code("muster_" + std::string(family.name)), or_dash(family.labels),
        std::string(metric_type_name(family.type)), or_dash(family.unit), std::string(family.help)};
    EXPECT_EQ(rows[i], expected);
  }
}

}  // namespace
}  // namespace muster
