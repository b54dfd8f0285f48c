// What a paged cache in float16 keeps, in every set of instructions.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/ops/decoder_kernels.h"

namespace muster::engine {
namespace {

std::vector<float> random_row(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> row(size);
  for (auto& value : row) value = normal(random);
  return row;
}

std::vector<Float16> halved(const DecoderKernels& kernels, std::span<const float> x) {
  std::vector<Float16> halves(x.size());
  kernels.halve_head(x.size(), x.data(), halves.data());
  return halves;
}

TEST(HalveHeadTest, RoundsToWhatTheKernelsReadAndKeepsWhatIsNoNumber) {
  for (const auto& kernels : decoder_kernels_available()) {
    SCOPED_TRACE(std::string(kernels.name));
    const std::vector<float> x{1, -2.5F, 1 + 0x1p-8F, 1 + 0x3p-8F, 1e6F, -1e6F, 0x1p-24F, 0};
    const std::vector<float> whole{1, -2.5F, 1 + 0x1p-8F, 1 + 0x3p-8F, 65504, -65504, 0x1p-24F, 0};
    const auto halves = halved(kernels, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(to_float(halves[i]), whole[i]) << x[i];
    }
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(to_float(halved(kernels, {&infinity, 1})[0]), 65504);
    for (const std::uint32_t bits : {0x7fc00000U, 0xffffffffU, 0x7f800001U}) {
      const auto none = std::bit_cast<float>(bits);
      EXPECT_TRUE(std::isnan(to_float(halved(kernels, {&none, 1})[0]))) << bits;
    }
  }
}

// In every size: nothing is written behind the end, and rounding is the number type's.
TEST(HalveHeadTest, EverySizeIsRoundedNumberByNumber) {
  for (const auto& kernels : decoder_kernels_available()) {
    for (std::size_t size = 1; size <= 80; ++size) {
      auto x = random_row(size, static_cast<unsigned>(size));
      if (size % 2 == 0) x[size / 2] *= 1e-6F;
      std::vector<Float16> halves(size + 16, Float16{0x1234});
      kernels.halve_head(size, x.data(), halves.data());
      for (std::size_t i = 0; i < size; ++i) {
        ASSERT_EQ(halves[i].bits, to_float16(x[i]).bits) << kernels.name << " " << x[i];
      }
      for (std::size_t i = size; i < halves.size(); ++i) ASSERT_EQ(halves[i].bits, 0x1234);
    }
  }
}

}  // namespace
}  // namespace muster::engine
