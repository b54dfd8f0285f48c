#include "metrics/strict_text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr const char* kHeader = "# HELP a b\n# TYPE a gauge\n";

std::string fault_of(const std::string& lines) {
  const std::string fault = read_strictly(kHeader + lines).fault;
  return fault.substr(0, fault.rfind(": "));
}

TEST(StrictText, ReadsLabelsBack) {
  const auto read = read_strictly(std::string(kHeader) + "a{x=\"1\\\"\\\\\\n\",y=\"\"} 2.5\n");
  EXPECT_EQ(read.fault, "");
  ASSERT_EQ(read.series.size(), 1U);
  EXPECT_EQ(read.series[0].labels[0].second, "1\"\\\n");
  EXPECT_EQ(read.series[0].value, 2.5);
}

TEST(StrictText, FindsEachFault) {
  EXPECT_EQ(fault_of("a 1"), "the last line has no end");
  EXPECT_EQ(fault_of("b 1\n"), "line 3: a series outside its family");
  EXPECT_EQ(fault_of("a 1\na 2\n"), "line 4: a series comes twice");
  EXPECT_EQ(fault_of("a NaN\n"), "line 3: a value that is no finite number");
  EXPECT_EQ(fault_of("a{x=\"\\t\"} 1\n"), "line 3: a label value that cannot be read");
  EXPECT_EQ(fault_of("a{x=\"\xFF\"} 1\n"), "line 3: a label value that cannot be read");
  EXPECT_EQ(fault_of("a{x=\"1\",x=\"2\"} 1\n"), "line 3: a label comes twice");
  EXPECT_EQ(fault_of("a{x=\"1\" 1\n"), "line 3: no closing brace");
  EXPECT_EQ(fault_of("# HELP a b\n"), "line 3: a family comes twice");
  EXPECT_EQ(fault_of("# TYPE a gauge\n"), "line 3: TYPE does not follow its HELP");
}

}  // namespace
}  // namespace muster
