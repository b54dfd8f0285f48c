#include "views/reading_text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ShortNumber, HasAtMostFourCharacters) {
  EXPECT_EQ(short_number(std::nullopt), "-");
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(999.4), "999");
  EXPECT_EQ(short_number(999.6), "1.0k");
  EXPECT_EQ(short_number(4'240), "4.2k");
  EXPECT_EQ(short_number(9'960), "10k");
  EXPECT_EQ(short_number(12.3e9), "12G");
  EXPECT_EQ(short_number(999.7e9), "1.0T");
}

TEST(GigabytesPair, HasADecimalWhereTheWholeIsSmall) {
  EXPECT_EQ(gigabytes_pair(98e9, 150.7e9), "98/151");
  EXPECT_EQ(gigabytes_pair(0.55e9, 8e9), "0.6/8.0");
  EXPECT_EQ(gigabytes_pair(std::nullopt, 8e9), "-/8.0");
  EXPECT_EQ(gigabytes_pair(std::nullopt, std::nullopt), "-");
}

TEST(PercentText, IsWhole) {
  EXPECT_EQ(percent_text(0.974), "97");
  EXPECT_EQ(percent_text(-0.0), "0");
  EXPECT_EQ(percent_text(std::nullopt), "-");
}

TEST(ShortModel, LeavesTheMakerOut) {
  EXPECT_EQ(short_model("NVIDIA H200"), "H200");
  EXPECT_EQ(short_model("NVIDIA Tesla T4"), "T4");
  EXPECT_EQ(short_model("AMD Instinct MI300X"), "MI300X");
  EXPECT_EQ(short_model("Intel Xeon"), "Intel Xeon");
}

}  // namespace
}  // namespace muster
