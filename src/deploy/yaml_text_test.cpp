#include "deploy/yaml_text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(YamlScalar, LeavesPlainWhatReadsAsText) {
  for (const auto* text : {"vllm/vllm-openai", "/data", "muster-tgi", "a=b", "nvidia.com/gpu=0"}) {
    EXPECT_EQ(yaml_scalar(text), text);
  }
}

TEST(YamlScalar, QuotesWhatWouldReadAsSomethingElse) {
  for (const auto* text : {"80", "0x1f", "1e3",        "yes",     "No",   "on", "NULL", "true",
                           "-x", "---",  "2026-11-21", "a: b",    "a #b", "*a", "&a",   "!a",
                           "",   " a",   "a ",         "8080:80", "{}",   "~",  ".5"}) {
    EXPECT_EQ(yaml_scalar(text), "\"" + std::string(text) + "\"");
  }
}

TEST(YamlScalar, EscapesAsJsonDoes) {
  EXPECT_EQ(yaml_scalar("a\"b\\c\n"), R"("a\"b\\c\n")");
  EXPECT_EQ(yaml_scalar("\xC3\xA9"), R"("\u00e9")");
  EXPECT_EQ(yaml_scalar("\xFF"), R"("\ufffd")");
}

}  // namespace
}  // namespace muster
