#include "scheduler/placement_expression.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

namespace muster {
namespace {

using Values = std::array<std::optional<double>, kPlacementNameCount>;

/// The value with index = 2, weight = 4, text_tokens = 10 and nothing else known.
std::optional<double> value(std::string_view text) {
  Values values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto name = PlacementExpression::names()[i].name;
    if (name == "index") values[i] = 2;
    if (name == "weight") values[i] = 4;
    if (name == "text_tokens") values[i] = 10;
  }
  const auto expression = PlacementExpression::parse(text);
  EXPECT_TRUE(expression) << text << ": " << expression.error().message;
  return expression ? (*expression)->evaluate(values) : std::nullopt;
}

std::string message(std::string_view text) {
  const auto expression = PlacementExpression::parse(text);
  return expression ? "" : expression.error().message;
}

TEST(PlacementExpression, ComputesAsCDoes) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("10 - 2 - 3"), 5);
  EXPECT_EQ(value("2 / 4 / 2"), 0.25);
  EXPECT_EQ(value("7 % 4"), 3);
  EXPECT_EQ(value("-index * -3"), 6);
  EXPECT_EQ(value("1.5e2"), 150);
  EXPECT_EQ(value("1 < 2 && 2 <= 2 && 3 > 2 && 2 >= 2 && 1 == 1 && 1 != 2"), 1);
  EXPECT_EQ(value("1 > 2 || 0"), 0);
  EXPECT_EQ(value("!0 + !5"), 1);
  EXPECT_EQ(value("0 ? 1 : 1 ? 2 : 3"), 2);
  EXPECT_EQ(value("min(3, index, 5) + max(1, weight) + abs(-1)"), 7);
  EXPECT_EQ(value("1 + 1 == 2 && 2 * 2 > 3"), 1);
  EXPECT_EQ(value("text_tokens/weight"), 2.5);
}

TEST(PlacementExpression, HasNoValueWhereANumberIsMissingOrNotFinite) {
  EXPECT_EQ(value("power + 1"), std::nullopt);
  EXPECT_EQ(value("min(1, power)"), std::nullopt);
  EXPECT_EQ(value("1 / 0"), std::nullopt);
  EXPECT_EQ(value("0 / 0"), std::nullopt);
  EXPECT_EQ(value("5 % 0"), std::nullopt);
  EXPECT_EQ(value("power < 100 ? 1 : 2"), std::nullopt);
  // What is not needed need not be known.
  EXPECT_EQ(value("0 && power"), 0);
  EXPECT_EQ(value("1 || power"), 1);
  EXPECT_EQ(value("index == 2 ? 7 : power"), 7);
}

TEST(PlacementExpression, RefusesWithTheColumnAndTheNearestName) {
  EXPECT_EQ(message("1 + queued_second"),
            "expression, column 5: unknown name queued_second: did you mean queued_seconds?");
  EXPECT_EQ(message("1 +"), "expression, column 4: a number or a name is expected before the end");
  EXPECT_EQ(message("(1"), "expression, column 3: a ) is missing before the end");
  EXPECT_EQ(message("1 2"), "expression, column 3: an operator is expected before 2");
  EXPECT_EQ(message("1 < 2 < 3"), "expression, column 7: an operator is expected before < 3");
  EXPECT_EQ(message("1 ? 2"), "expression, column 6: a : is expected after ?");
  EXPECT_EQ(message("abs(1, 2)"), "expression, column 10: one argument is taken by abs");
  EXPECT_EQ(message("max"), "expression, column 4: a ( is expected after max");
  EXPECT_EQ(message("1e999"), "expression, column 1: not a number: 1e999");
  EXPECT_EQ(message(""), "expression, column 1: a number or a name is expected before the end");
  EXPECT_NE(message("xyzzy").find("unknown name xyzzy; known are outstanding_seconds, "),
            std::string::npos);
}

TEST(PlacementExpression, IsBounded) {
  const std::string open(63, '(');
  EXPECT_EQ(value(open + "1" + std::string(63, ')')), 1);
  EXPECT_EQ(message(open + "(1" + std::string(64, ')')),
            "expression, column 65: it is nested deeper than 64 levels");
  EXPECT_FALSE(PlacementExpression::parse(std::string(100, '-') + "1"));
  EXPECT_EQ(message(std::string(4097, '1')), "expression is longer than 4096 characters: 4097");
  std::string sum = "1";
  while (sum.size() < 4095) sum += "-1";
  EXPECT_EQ(value(sum), 1 - 2047);
}

TEST(PlacementExpression, NamesAreUniqueAndExplained) {
  for (const PlacementName& named : PlacementExpression::names()) {
    EXPECT_FALSE(named.meaning.empty()) << named.name;
    EXPECT_EQ(message(named.name), "");
    EXPECT_EQ(
        std::count_if(PlacementExpression::names().begin(), PlacementExpression::names().end(),
                      [&](const PlacementName& other) { return other.name == named.name; }),
        1);
  }
}

TEST(PlacementExpression, EachNameIsInTheDocument) {
  std::ifstream file(MUSTER_SOURCE_DIR "/docs/strategies.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const auto& [name, meaning] : PlacementExpression::names()) {
    const auto row = "| `" + std::string(name) + "` | " + std::string(meaning) + " |\n";
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace muster
