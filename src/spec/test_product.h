#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spec/precision.h"

namespace muster {

/// A product C = A B of matrices of whole numbers, made so that every sum of it, in whatever order,
/// is exact in its precision: any difference at all is a fault.
///
/// Fp32: both sides from -m to m with m^2 size <= 2^24. Bf16, Fp16: A from -8 to 8, and each column
/// of B has 32 entries of 1 or -1, so that |C| <= 256 = 2^8. Source: IEEE 754-2019, 3.6 (binary32
/// holds whole numbers to 2^24, binary16 to 2^11); bfloat16 has 8 bits of significand. Numbers come
/// from splitmix64: Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom Number Generators".
struct TestProduct {
  static constexpr std::uint32_t kSizeStep = 32;   // sizes are multiples of it
  static constexpr std::uint32_t kSizeMax = 8192;  // above, images could need more than 2^53
  static constexpr std::uint32_t kImageCount = 2;

  std::uint32_t size = 0;
  std::uint64_t seed = 0;
  Precision precision = Precision::Fp32;
};

/// Shapes: values [size, size], row-major.
void fill_left(const TestProduct& product, std::span<float> values);
void fill_right(const TestProduct& product, std::span<float> values);

/// The vector x of one image, 1 to 4096 each. Shapes: [size].
std::vector<double> test_vector(const TestProduct& product, std::uint32_t image);

/// A (B x), exact, without making C: what C x must be. Of a wrong row, each image shows it but for
/// one chance in 4096 at most, and always if only one entry is wrong. Shapes: [size].
///
/// Source: Freivalds 1977, "Probabilistic Machines Can Use Less Running Time".
std::vector<double> expected_image(const TestProduct& product, std::uint32_t image);

}  // namespace muster
