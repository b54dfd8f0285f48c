// Matrices whose products can be checked exactly and cheaply: entries are small integers, so every
// sum is exact in the precision under test, and a random vector reveals a wrong entry without a
// second product (Freivalds 1977).

#include "spec/test_product.h"

#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace muster {
namespace {

constexpr std::uint64_t kLeft = 1;
constexpr std::uint64_t kRight = 2;
constexpr std::uint64_t kVector = 3;  // and those after it, one an image

constexpr std::int64_t kNarrowMost = 8;
constexpr std::uint32_t kEntriesPerColumn = 32;
constexpr std::uint64_t kVectorMost = 4096;

constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

// The entries of one side, or of a vector, without a matrix in memory.
class Entries {
 public:
  Entries(const TestProduct& product, std::uint64_t which)
      : key_(mix(product.seed * 16 + which)), size_(product.size) {}

  std::uint64_t random(std::uint64_t index) const { return mix(key_ ^ index); }

  // -most to most.
  std::int64_t within(std::uint32_t row, std::uint32_t column, std::int64_t most) const {
    const auto choices = static_cast<std::uint64_t>(2 * most + 1);
    // The upper half times the choices: no division, and as even as 32 bits can be.
    const auto half = random(std::uint64_t{row} * size_ + column) >> 32U;
    return static_cast<std::int64_t>((half * choices) >> 32U) - most;
  }

  // 1 or -1 in every (size / 32)th row, from a row that the column chooses; else 0.
  std::int64_t sparse(std::uint32_t row, std::uint32_t column) const {
    const auto step = size_ / kEntriesPerColumn;
    if (row % step != random(column) % step) return 0;
    return (random((std::uint64_t{row} + 1) * size_ + column) & 1U) != 0 ? 1 : -1;
  }

 private:
  std::uint64_t key_;
  std::uint32_t size_;
};

std::int64_t wide_most(std::uint32_t size) {
  constexpr double kExact = 1 << 24;
  return static_cast<std::int64_t>(std::sqrt(kExact / size));
}

std::int64_t left_entry(const TestProduct& product, const Entries& entries, std::uint32_t row,
                        std::uint32_t column) {
  const bool is_wide = product.precision == Precision::Fp32;
  return entries.within(row, column, is_wide ? wide_most(product.size) : kNarrowMost);
}

std::int64_t right_entry(const TestProduct& product, const Entries& entries, std::uint32_t row,
                         std::uint32_t column) {
  if (product.precision != Precision::Fp32) return entries.sparse(row, column);
  return entries.within(row, column, wide_most(product.size));
}

template <typename Entry>
void fill(const TestProduct& product, std::uint64_t which, std::span<float> values, Entry entry) {
  MUSTER_CHECK(values.size() == std::size_t{product.size} * product.size);
  const Entries entries(product, which);
  std::size_t at = 0;
  for (std::uint32_t row = 0; row < product.size; ++row) {
    for (std::uint32_t column = 0; column < product.size; ++column) {
      values[at++] = static_cast<float>(entry(product, entries, row, column));
    }
  }
}

template <typename Entry>
std::vector<std::int64_t> times(const TestProduct& product, std::uint64_t which,
                                const std::vector<std::int64_t>& x, Entry entry) {
  const Entries entries(product, which);
  std::vector<std::int64_t> result(product.size);
  for (std::uint32_t row = 0; row < product.size; ++row) {
    std::int64_t sum = 0;
    for (std::uint32_t column = 0; column < product.size; ++column) {
      sum += entry(product, entries, row, column) * x[column];
    }
    result[row] = sum;
  }
  return result;
}

std::vector<std::int64_t> whole_vector(const TestProduct& product, std::uint32_t image) {
  const Entries entries(product, kVector + image);
  std::vector<std::int64_t> x(product.size);
  for (std::uint32_t i = 0; i < product.size; ++i) {
    x[i] = static_cast<std::int64_t>(entries.random(i) % kVectorMost) + 1;
  }
  return x;
}

std::vector<double> as_doubles(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

void fill_left(const TestProduct& product, std::span<float> values) {
  fill(product, kLeft, values, left_entry);
}

void fill_right(const TestProduct& product, std::span<float> values) {
  fill(product, kRight, values, right_entry);
}

std::vector<double> test_vector(const TestProduct& product, std::uint32_t image) {
  return as_doubles(whole_vector(product, image));
}

std::vector<double> expected_image(const TestProduct& product, std::uint32_t image) {
  const auto inner = times(product, kRight, whole_vector(product, image), right_entry);
  return as_doubles(times(product, kLeft, inner, left_entry));
}

}  // namespace muster
