#include "spec/test_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace muster {
namespace {

struct Sides {
  std::vector<float> left;
  std::vector<float> right;
};

Sides sides_of(const TestProduct& product) {
  const auto count = std::size_t{product.size} * product.size;
  Sides sides{std::vector<float>(count), std::vector<float>(count)};
  fill_left(product, sides.left);
  fill_right(product, sides.right);
  return sides;
}

// C = A B in doubles, the plain way.
std::vector<double> multiply(const Sides& sides, std::uint32_t size) {
  std::vector<double> result(std::size_t{size} * size);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t k = 0; k < size; ++k) {
      for (std::size_t j = 0; j < size; ++j) {
        result[i * size + j] +=
            double{sides.left[i * size + k]} * double{sides.right[k * size + j]};
      }
    }
  }
  return result;
}

class TestProductTest : public testing::TestWithParam<Precision> {};

TEST_P(TestProductTest, TheExpectedImageIsThatOfThePlainProduct) {
  const TestProduct product{.size = 64, .seed = 7, .precision = GetParam()};
  const auto whole = multiply(sides_of(product), product.size);
  for (std::uint32_t image = 0; image < TestProduct::kImageCount; ++image) {
    const auto x = test_vector(product, image);
    const auto expected = expected_image(product, image);
    for (std::size_t i = 0; i < product.size; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < product.size; ++j) sum += whole[i * product.size + j] * x[j];
      EXPECT_EQ(sum, expected[i]) << "row " << i;
    }
  }
}

TEST_P(TestProductTest, NoSumCanLeaveWhatThePrecisionHoldsExactly) {
  const TestProduct product{.size = 96, .seed = 1, .precision = GetParam()};
  const auto sides = sides_of(product);
  const double exact = GetParam() == Precision::Fp32 ? 16777216 : 256;
  for (std::size_t j = 0; j < product.size; ++j) {
    for (std::size_t i = 0; i < product.size; ++i) {
      double sum = 0;  // of the absolute values: the most that any order can reach
      for (std::size_t k = 0; k < product.size; ++k) {
        sum += std::abs(double{sides.left[i * product.size + k]} *
                        double{sides.right[k * product.size + j]});
      }
      ASSERT_LE(sum, exact);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, TestProductTest,
                         testing::Values(Precision::Fp32, Precision::Bf16));

TEST(TestProduct, EntriesGoToTheirBoundsAndDifferBySeed) {
  // 2^24 / 64 = 2^18, whose root is 512.
  const auto sides = sides_of({.size = 64, .seed = 1});
  const auto [least, most] = std::minmax_element(sides.left.begin(), sides.left.end());
  EXPECT_GE(*least, -512);
  EXPECT_LE(*most, 512);
  EXPECT_GT(*most - *least, 900);
  EXPECT_NE(sides.left, sides.right);
  EXPECT_NE(sides.left, sides_of({.size = 64, .seed = 2}).left);
}

TEST(TestProduct, ANarrowColumnHas32Entries) {
  const TestProduct product{.size = 128, .seed = 3, .precision = Precision::Bf16};
  const auto sides = sides_of(product);
  for (std::size_t j = 0; j < product.size; ++j) {
    int entries = 0;
    for (std::size_t k = 0; k < product.size; ++k) {
      entries += sides.right[k * product.size + j] != 0 ? 1 : 0;
    }
    EXPECT_EQ(entries, 32);
  }
}

}  // namespace
}  // namespace muster
