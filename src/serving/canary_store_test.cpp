#include "serving/canary_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>

namespace muster {
namespace {

class CanaryStore : public ::testing::Test {
 protected:
  CanaryStore() { std::filesystem::remove_all(folder_); }
  ~CanaryStore() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("canary_store." + std::to_string(::getpid()));
};

TEST_F(CanaryStore, KeepsEveryBitOfARow) {
  const CanaryRows rows{
      {"avx512 torch 2.11", {0.1F, -0.0F, std::numeric_limits<float>::denorm_min()}},
      {"sm_90", {1.0F}}};
  ASSERT_TRUE(write_canary_rows(folder_, "abc", rows));
  const auto kept = read_canary_rows(folder_, "abc");
  EXPECT_EQ(kept, rows);
  EXPECT_TRUE(std::signbit(kept.at("avx512 torch 2.11")[1]));
}

TEST_F(CanaryStore, ABrokenFileIsAsNone) {
  EXPECT_TRUE(read_canary_rows(folder_, "abc").empty());
  std::filesystem::create_directories(folder_ / "canaries");
  for (const auto* text : {"{", "[]", R"({"a": 1})", R"({"a": [1.5]})", R"({"a": [4294967296]})"}) {
    std::ofstream(folder_ / "canaries" / "abc.json") << text;
    EXPECT_TRUE(read_canary_rows(folder_, "abc").empty()) << text;
  }
}

}  // namespace
}  // namespace muster
