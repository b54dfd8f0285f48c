#include "jobs/precision_choice.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/text.h"

namespace muster {
namespace {

ProbeVerdict verdict_with(double gain, double cosine_mean, double cosine_min) {
  return {{{Precision::Fp32, 1000, 1, 1}, {Precision::Bf16, 1000 * gain, cosine_mean, cosine_min}}};
}

TEST(ChoosePrecision, TakesTheFastestThatIsExactEnough) {
  EXPECT_EQ(choose_precision(verdict_with(1.8, 0.9999, 0.9995)).precision, Precision::Bf16);
}

TEST(ChoosePrecision, StaysWithFp32WhereTheOtherIsNotFaster) {
  EXPECT_EQ(choose_precision(verdict_with(0.9, 0.9999, 0.9995)).precision, Precision::Fp32);
  EXPECT_EQ(choose_precision(verdict_with(1.04, 0.9999, 0.9995)).precision, Precision::Fp32);
}

TEST(ChoosePrecision, StaysWithFp32WhereACosineIsTooLow) {
  EXPECT_EQ(choose_precision(verdict_with(3, 0.9994, 0.9991)).precision, Precision::Fp32);
  EXPECT_EQ(choose_precision(verdict_with(3, 0.9999, 0.9989)).precision, Precision::Fp32);
}

TEST(ChoosePrecision, GivesTheReasonWithItsFigures) {
  EXPECT_EQ(choose_precision(verdict_with(1.8, 0.9999, 0.9995)).reason,
            "measured; bf16 is 1.80x fp32 with cosine 0.99990 in the mean, 0.99950 at least");
  EXPECT_EQ(choose_precision({{{Precision::Fp32, 1000, 1, 1}}}).reason,
            "measured: this device computes in fp32 alone");
}

class VerdictCacheTest : public testing::Test {
 protected:
  VerdictCacheTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("verdicts." + std::to_string(::getpid()))) {}
  ~VerdictCacheTest() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_;
  const VerdictKey key_{"hash", "AMD EPYC", "cpu avx512 torch 2.11.0", "mean"};
};

TEST_F(VerdictCacheTest, GivesBackWhatWasKept) {
  EXPECT_FALSE(read_cached_verdict(folder_, key_));
  ASSERT_TRUE(write_cached_verdict(folder_, key_, verdict_with(1.5, 0.9999, 0.9998)));
  const auto back = read_cached_verdict(folder_, key_);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->measures.size(), 2U);
  EXPECT_EQ(back->measures[1].precision, Precision::Bf16);
  EXPECT_EQ(back->measures[1].tokens_per_second, 1500);
  EXPECT_EQ(back->measures[1].cosine_min, 0.9998);
}

TEST_F(VerdictCacheTest, AnotherModelProcessorOrEngineIsAnotherVerdict) {
  ASSERT_TRUE(write_cached_verdict(folder_, key_, verdict_with(1.5, 0.9999, 0.9998)));
  for (auto member : {&VerdictKey::model_hash, &VerdictKey::processor, &VerdictKey::engine_class,
                      &VerdictKey::pooling}) {
    auto other = key_;
    other.*member += "x";
    EXPECT_FALSE(read_cached_verdict(folder_, other));
  }
}

TEST_F(VerdictCacheTest, ABrokenFileCountsAsNone) {
  ASSERT_TRUE(write_cached_verdict(folder_, key_, verdict_with(1.5, 0.9999, 0.9998)));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    for (const char* content :
         {"", "{", "[]", R"({"measures": []})", R"({"measures": [{"precision": "bf16"}]})",
          R"({"measures": [{"precision": 3}]})"}) {
      SCOPED_TRACE(content);
      ASSERT_TRUE(write_file_atomically(entry.path(), content));
      EXPECT_FALSE(read_cached_verdict(folder_, key_));
    }
  }
}

TEST(PrecisionTexts, AreSixtyFourDifferentValidTexts) {
  const auto texts = precision_texts();
  EXPECT_EQ(texts.size(), 64U);
  EXPECT_EQ(std::set<std::string_view>(texts.begin(), texts.end()).size(), 64U);
  for (const auto text : texts) {
    EXPECT_FALSE(text.empty());
    EXPECT_FALSE(invalid_utf8_at(text));
  }
}

}  // namespace
}  // namespace muster
