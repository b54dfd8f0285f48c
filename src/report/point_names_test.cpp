#include "report/point_names.h"

#include <gtest/gtest.h>

#include <string>

#include "report/report_fixture.h"

namespace muster {
namespace {

std::vector<std::string> names_of(const std::vector<ReportResult>& results) {
  std::vector<std::string> names;
  for (const auto& result : results) names.push_back(result.name);
  return names;
}

ReportResult found_point(const std::string& file, const std::string& batch_size,
                         const std::string& dtype) {
  auto point = made_point(file, batch_size, dtype, 100);
  point.is_compared = false;
  return point;
}

// 8 before 16, which letters would not have; the file that was named stays the second.
TEST(PointNames, AreWhatDiffersInTheOrderOfItsNumbers) {
  std::vector<ReportResult> results{
      found_point("a.json", "16", "fp32"), made_result("mine.json", {made_trial(40, 0.02)}),
      found_point("b.json", "8", "fp32"), found_point("c.json", "8", "bf16")};
  name_points(results);
  EXPECT_EQ(names_of(results),
            (std::vector<std::string>{"batch_size=8 torch_dtype=bf16", "mine.json",
                                      "batch_size=8 torch_dtype=fp32",
                                      "batch_size=16 torch_dtype=fp32"}));
  EXPECT_EQ(results[3].record->config.at("batch_size"), "16") << "the whole point has moved";
}

TEST(PointNames, TwoOfTheSameValuesAreToldApart) {
  std::vector<ReportResult> results{found_point("a.json", "8", "bf16"),
                                    found_point("b.json", "8", "bf16"),
                                    found_point("c.json", "1", "bf16")};
  name_points(results);
  EXPECT_EQ(names_of(results), (std::vector<std::string>{"batch_size=1", "batch_size=8 (a.json)",
                                                         "batch_size=8 (b.json)"}));
}

TEST(PointNames, APointAloneAndOneThatIsNamedKeepTheirs) {
  std::vector<ReportResult> alone{found_point("a.json", "8", "bf16")};
  name_points(alone);
  EXPECT_EQ(names_of(alone), std::vector<std::string>{"a.json"});
  std::vector<ReportResult> named{made_point("a.json", "8", "bf16", 100),
                                  made_point("b.json", "1", "bf16", 100)};
  for (auto& point : named) point.is_compared = true;
  name_points(named);
  EXPECT_EQ(names_of(named), (std::vector<std::string>{"a.json", "b.json"}));
}

}  // namespace
}  // namespace muster
