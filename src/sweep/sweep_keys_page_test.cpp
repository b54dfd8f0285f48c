#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "base/text.h"
#include "sweep/sweep_keys.h"

namespace muster {
namespace {

// The rows of the tables of docs/formats/bench-run.md whose first cell is a key, by that key.
std::map<std::string, std::string> documented_keys() {
  std::ifstream page(MUSTER_SOURCE_DIR "/docs/formats/bench-run.md");
  EXPECT_TRUE(page) << "the page is missing";
  std::map<std::string, std::string> rows;
  for (std::string line; std::getline(page, line);) {
    constexpr std::string_view kBegin = "| `";
    const auto end = line.find('`', kBegin.size());
    if (!line.starts_with(kBegin) || end == std::string::npos) continue;
    const auto key = line.substr(kBegin.size(), end - kBegin.size());
    const bool is_key = find_sweep_key(key) != nullptr || is_sweep_section(key) ||
                        key.find('.') != std::string::npos;
    if (is_key) rows[key] = line;
  }
  return rows;
}

TEST(SweepKeysPage, HasEveryKeyAndNoOther) {
  const auto rows = documented_keys();
  for (const auto& row : sweep_keys()) {
    const auto found = rows.find(std::string(row.path));
    ASSERT_NE(found, rows.end()) << row.path;
    EXPECT_EQ(found->second.find("| a list |") != std::string::npos, row.may_sweep)
        << found->second;
    if (row.usual.empty()) continue;
    EXPECT_NE(found->second.find(fmt::format("| `{}` |", row.usual)), std::string::npos)
        << found->second;
  }
  for (const auto& [key, line] : rows) EXPECT_NE(find_sweep_key(key), nullptr) << line;
}

TEST(SweepKeys, AreInTheOrderOfTheirNumbersAndNamesNothingTwice) {
  std::map<std::string, int> paths;
  std::map<std::string, int> columns;
  for (const auto& row : sweep_keys()) {
    EXPECT_EQ(&sweep_key(row.key), &row);
    EXPECT_EQ(++paths[std::string(row.path)], 1) << row.path;
    if (!row.column.empty()) EXPECT_EQ(++columns[std::string(row.column)], 1) << row.column;
  }
}

TEST(SweepKeys, KnowTheNamesOfOthers) {
  EXPECT_EQ(find_sweep_key("backend.endpoint")->key, SweepKey::Url);
  EXPECT_EQ(find_sweep_key("backend.dtype")->key, SweepKey::TorchDtype);
  EXPECT_EQ(find_sweep_key("backend.nothing"), nullptr);
  EXPECT_TRUE(is_sweep_section("scenario.input_shapes"));
  EXPECT_FALSE(is_sweep_section("scenario.num_samples"));
  EXPECT_EQ(nearest_sweep_path("scenario.modle"), "backend.model");
}

}  // namespace
}  // namespace muster
