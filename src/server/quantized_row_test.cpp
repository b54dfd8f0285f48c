#include "server/quantized_row.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

std::string quantized(const std::vector<float>& row, EmbeddingFormat format) {
  std::string out;
  append_quantized(row, format, out);
  return out;
}

// 1001 0001 is 145, and 1000 0000 is 128.
TEST(QuantizedRow, BitsArePackedFromTheHighestAndTheRestIsZero) {
  const std::vector<float> row{1, -1, 0, 0.5F, 0, 0, 0, 2, 3};
  EXPECT_EQ(quantized(row, EmbeddingFormat::Ubinary), "145,128");
  EXPECT_EQ(quantized(row, EmbeddingFormat::Binary), "17,0");
}

// The root mean square is 1, the range 4, a step 8/255: (1 + 4) * 255 / 8 is 159.375, and
// (-1 + 4) * 255 / 8 is 95.625.
TEST(QuantizedRow, StepsAreThoseOfTheRowsOwnRange) {
  const std::vector<float> row{1, -1, 1, -1};
  EXPECT_EQ(quantized(row, EmbeddingFormat::Uint8), "159,95,159,95");
  EXPECT_EQ(quantized(row, EmbeddingFormat::Int8), "31,-33,31,-33");
  EXPECT_EQ(quantized({0.25F, -0.25F, 0.25F, -0.25F}, EmbeddingFormat::Uint8), "159,95,159,95");
}

// The root mean square of 10 and 99 zeros is 1, and 10 is beyond 4; (0 + 4) * 255 / 8 is 127.5.
TEST(QuantizedRow, WhatIsBeyondTheRangeStaysAtItsEnd) {
  std::vector<float> row(100, 0.0F);
  row[0] = 10;
  EXPECT_TRUE(quantized(row, EmbeddingFormat::Uint8).starts_with("255,127,127"));
  row[0] = -10;
  EXPECT_TRUE(quantized(row, EmbeddingFormat::Int8).starts_with("-128,-1,-1"));
}

TEST(QuantizedRow, ARowOfZerosHasANumberForEachValue) {
  EXPECT_EQ(quantized({0, 0}, EmbeddingFormat::Uint8), "127,127");
  EXPECT_EQ(quantized({0, 0}, EmbeddingFormat::Ubinary), "0");
}

}  // namespace
}  // namespace muster
