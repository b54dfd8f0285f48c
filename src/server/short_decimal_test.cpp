#include "server/short_decimal.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "server/vector_registers_fixture.h"

namespace muster {
namespace {

std::string put(PutShortest way, std::span<const float> values) {
  std::string text(values.size() * (kShortestMost + 1), ' ');
  text.resize(static_cast<std::size_t>(way(values, text.data()) - text.data()));
  return text;
}

std::string shortest(float value) {
  auto text = put(put_shortest, {&value, 1});
  EXPECT_EQ(text.back(), ',');
  text.pop_back();
  return text;
}

std::string by_standard(std::span<const float> values) {
  std::string text(values.size() * (kShortestMost + 1), ' ');
  char* at = text.data();
  for (const float value : values) {
    at = std::to_chars(at, text.data() + text.size(), value).ptr;
    *at++ = ',';
  }
  text.resize(static_cast<std::size_t>(at - text.data()));
  return text;
}

void expect_as_by_standard(std::span<const float> values) {
  for (const auto way : put_shortest_available()) {
    ASSERT_EQ(put(way, values), by_standard(values));
  }
}

TEST(ShortDecimal, ForEachNumberOfDigitsAndZeros) {
  EXPECT_EQ(shortest(0.1F), "0.1");
  EXPECT_EQ(shortest(-0.3F), "-0.3");
  EXPECT_EQ(shortest(0.01F), "0.01");
  EXPECT_EQ(shortest(0.001F), "0.001");
  EXPECT_EQ(shortest(0.0625F), "0.0625");
  EXPECT_EQ(shortest(-0.0123F), "-0.0123");
  EXPECT_EQ(shortest(0.123456F), "0.123456");
  EXPECT_EQ(shortest(-0.0123456F), "-0.0123456");
  EXPECT_EQ(shortest(0.00123456F), "0.00123456");
  EXPECT_EQ(shortest(0.12345F), "0.12345");
  EXPECT_EQ(shortest(0.99999994F), "0.99999994");       // the last before 1
  EXPECT_EQ(shortest(0.0099999988F), "0.009999999");    // the last before 0.01
  EXPECT_EQ(shortest(0.00099999993F), "0.0009999999");  // the last before 0.001
  EXPECT_EQ(shortest(-0.00012F), "-0.00012");
  EXPECT_EQ(shortest(0.000123456F), "0.000123456");
  EXPECT_EQ(shortest(0), "0");
  EXPECT_EQ(shortest(-0.0F), "-0");
  EXPECT_EQ(shortest(1), "1");
  EXPECT_EQ(shortest(0.0001F), "1e-04");
  EXPECT_EQ(shortest(-0.0003F), "-3e-04");  // shorter than -0.0003
  EXPECT_EQ(shortest(-1.17549435e-38F), "-1.1754944e-38");
}

TEST(ShortDecimal, ForAnyNumberOfValues) {
  std::vector<float> values;
  for (const float value : {0.5F, -0.123F, 0.05123457F, 2.5F, -0.0001F, 0.01234567F, 1e-9F}) {
    for (int i = 0; i < 7; ++i) values.push_back(value * (1 + 0.0123F * static_cast<float>(i)));
  }
  for (std::size_t count = 0; count <= values.size(); ++count) {
    expect_as_by_standard({values.data(), count});
  }
}

// ThreadSanitizer takes ten minutes for all of them, and there is one thread.
#if defined(__SANITIZE_THREAD__)
constexpr bool kHasTimeForAll = false;
#else
constexpr bool kHasTimeForAll = true;
#endif

// In a run of --long all 114 million of them, of either sign in turn.
TEST(ShortDecimal, IsWhatTheStandardLibraryWritesFrom000009To11) {
  const bool is_long = kHasTimeForAll && std::getenv("FUZZ_SECONDS") != nullptr;
  const std::uint32_t stride = is_long ? 1 : 101;
  const auto end = std::bit_cast<std::uint32_t>(1.1F);
  std::vector<float> values;
  for (auto bits = std::bit_cast<std::uint32_t>(0.00009F); bits < end; bits += stride) {
    values.push_back(std::copysign(std::bit_cast<float>(bits), bits % 2 == 0 ? 1.0F : -1.0F));
    if (values.size() < 4096) continue;
    ASSERT_NO_FATAL_FAILURE(expect_as_by_standard(values)) << "until bits " << bits;
    values.clear();
  }
  expect_as_by_standard(values);
}

// Where the gap between neighbours changes, and where a digit is added.
TEST(ShortDecimal, IsWhatTheStandardLibraryWritesAroundPowersOfTwoAndTen) {
  for (const float power : {1.0F, 0.5F, 0.25F, 0.125F, 0.1F, 0.0625F, 0.03125F, 0.015625F, 0.01F,
                            0.0078125F, 0.00390625F, 0.001953125F, 0.001F, 0.0009765625F,
                            0.00048828125F, 0.000244140625F, 0.0001220703125F, 0.0001F}) {
    std::vector<float> values;
    for (std::uint32_t i = 0; i < 64; ++i) {
      values.push_back(std::bit_cast<float>(std::bit_cast<std::uint32_t>(power) + i - 32));
    }
    expect_as_by_standard(values);
  }
}

TEST(ShortDecimal, LeavesNothingInTheUpperHalvesOfVectorRegisters) {
  const std::vector<float> values(64, 0.25F);
  std::string text(values.size() * (kShortestMost + 1), ' ');
  const auto before = are_upper_halves_used();
  if (before.value_or(true)) GTEST_SKIP() << "the CPU does not say so, or they are in use already";
  for (const auto way : put_shortest_available()) {
    way(values, text.data());
    EXPECT_EQ(are_upper_halves_used(), false);
  }
}

}  // namespace
}  // namespace muster
