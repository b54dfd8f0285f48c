// Attention over a paged cache in float16, in every set of instructions: near its formula, and a
// row the same bits in whatever strip.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/ops/decoder_kernels.h"

namespace muster::engine {
namespace {

constexpr std::size_t kLength = 300;  // of the sequence; 19 blocks, the last one not whole
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_row(std::size_t size, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> row(size);
  for (auto& value : row) value = normal(random);
  return row;
}

bool is_by_tiles(const DecoderKernels& kernels, std::size_t size) {
  return kernels.name.ends_with("+amx") && size <= 256;
}

bool is_by_pairs(const DecoderKernels& kernels, std::size_t size) {
  return kernels.name == "avx512+bf16+vnni" && size % 16 == 0 && size <= 256;
}

float to_bf16_and_back(float value) { return to_float(to_bfloat16(value)); }

/// What the cache holds of a value.
float kept_value(const DecoderKernels& kernels, std::size_t size, float value) {
  if (is_by_pairs(kernels, size)) return to_bf16_and_back(value);
  if (is_by_tiles(kernels, size)) value = to_bf16_and_back(value);
  return to_float(to_float16(value));
}

float largest_of(std::span<const float> x) {
  float most = 0;
  for (const float value : x) most = std::max(most, std::abs(value));
  return most;
}

/// What it holds of a key. In pairs: of [2^e, 2^(e + 1)), where the largest element is, the 13th
/// part of a bit is one; the lowest bits of the first 8 elements are those of e + 127 - 12.
std::vector<double> kept_key(const DecoderKernels& kernels, std::span<const float> key) {
  std::vector<double> kept;
  const bool is_by_pair = is_by_pairs(kernels, key.size());
  const int exponent = is_by_pair ? std::ilogb(largest_of(key)) : 0;
  for (std::size_t c = 0; c < key.size(); ++c) {
    if (!is_by_pair) {
      kept.push_back(kept_value(kernels, key.size(), key[c]));
      continue;
    }
    auto whole = static_cast<int>(std::nearbyint(std::ldexp(key[c], 12 - exponent)));
    const auto code = static_cast<unsigned>(exponent + 127 - 12);
    if (c < 8)
      whole =
          static_cast<int>(static_cast<unsigned>(whole & ~1) | (code >> (c / 2 + c % 2 * 4) & 1U));
    kept.push_back(std::ldexp(whole, exponent - 12));
  }
  return kept;
}

/// What scores are made of.
std::vector<double> read_query(const DecoderKernels& kernels, std::span<const float> query) {
  std::vector<double> read(query.begin(), query.end());
  const double most = largest_of(query);
  for (double& q : read) {
    if (is_by_tiles(kernels, query.size())) q = to_bf16_and_back(static_cast<float>(q));
    if (is_by_pairs(kernels, query.size())) q = std::nearbyint(q * 4095 / most) * most / 4095;
  }
  return read;
}

/// A sequence's keys and values in blocks that do not follow each other; all that is not theirs is
/// not a number.
class Cache {
 public:
  Cache(const DecoderKernels& kernels, std::size_t size, std::span<const float> keys,
        std::span<const float> values)
      : kernels_(&kernels),
        size_(size),
        keys_(keys.begin(), keys.end()),
        values_(values.begin(), values.end()),
        pool_(41 * block_size() + 16, Float16{0x7fff}) {
    for (std::uint32_t b = 0; b * kKvBlockTokens < kLength; ++b) blocks_.push_back(b * 17 % 41);
    for (std::size_t p = 0; p < kLength; ++p) keep(p);
  }

  std::span<const float> key(std::size_t position) const {
    return std::span(keys_).subspan(position * size_, size_);
  }
  std::span<const float> value(std::size_t position) const {
    return std::span(values_).subspan(position * size_, size_);
  }
  void set_key(std::size_t position, std::size_t column, float value) {
    keys_[position * size_ + column] = value;
    keep(position);
  }
  void set_value(std::size_t position, std::size_t column, float value) {
    values_[position * size_ + column] = value;
    keep(position);
  }
  PagedHead<Float16> head() const { return {pool_.data(), blocks_, block_size(), 0, size_}; }
  std::size_t size() const { return size_; }

 private:
  std::size_t block_size() const { return 2 * size_ * kKvBlockTokens; }
  void keep(std::size_t position) {
    kernels_->keep_fp16(size_, position % kKvBlockTokens, key(position).data(),
                        value(position).data(),
                        pool_.data() + blocks_[position / kKvBlockTokens] * block_size());
  }

  const DecoderKernels* kernels_;
  std::size_t size_;
  std::vector<float> keys_, values_;  // [position, size]
  std::vector<Float16> pool_;
  std::vector<std::uint32_t> blocks_;
};

struct Range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// out[i] of the rows [first, first + count), row i with the i-th query and range.
std::vector<float> attend(const DecoderKernels& kernels, const Cache& cache,
                          std::span<const float> queries, std::span<const Range> ranges, float cap,
                          std::size_t first, std::size_t count) {
  std::vector<float> out(count * cache.size());
  std::vector<float> scratch(kernels.attention_rows * 304);
  std::vector<AttentionRow> rows;
  for (std::size_t i = 0; i < count; ++i) {
    rows.push_back({.query = queries.data() + (first + i) * cache.size(),
                    .out = out.data() + i * cache.size(),
                    .begin = ranges[first + i].begin,
                    .end = ranges[first + i].end});
  }
  kernels.attend_fp16(cache.head(), rows, {cap}, scratch.data());
  return out;
}

std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// Rows of a prompt of which the last sees all but 4 positions; every fourth has a window.
std::vector<Range> ranges_of(std::uint32_t count) {
  std::vector<Range> ranges;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto end = static_cast<std::uint32_t>(kLength - 4) - (count - 1 - i);
    ranges.push_back({i % 4 == 3 ? end - 37 : 0, end});
  }
  return ranges;
}

struct Expected {
  double value = 0;
  double mean_size = 0;  // what it would be, were all values positive
};

/// By the formula, from what the cache holds.
std::vector<Expected> by_formula(const DecoderKernels& kernels, const Cache& cache,
                                 std::span<const float> query, const Range& range, double cap) {
  std::vector<double> scores;
  const auto read = read_query(kernels, query);
  for (std::size_t p = range.begin; p < range.end; ++p) {
    double score = 0;
    const auto key = kept_key(kernels, cache.key(p));
    for (std::size_t c = 0; c < cache.size(); ++c) score += read[c] * key[c];
    scores.push_back(cap > 0 ? cap * std::tanh(score / cap) : score);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  std::vector<Expected> out(cache.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double weight = std::exp(scores[i] - largest);
    total += weight;
    for (std::size_t c = 0; c < cache.size(); ++c) {
      const double value = kept_value(kernels, cache.size(), cache.value(range.begin + i)[c]);
      out[c].value += weight * value;
      out[c].mean_size += weight * std::abs(value);
    }
  }
  for (auto& value : out) value = {value.value / total, value.mean_size / total};
  return out;
}

/// A block of the cache with one position's key and value, of anything else 0x1234.
std::vector<Float16> block_with(const DecoderKernels& kernels, std::size_t place,
                                std::span<const float> key, std::span<const float> value) {
  std::vector<Float16> block(2 * key.size() * kKvBlockTokens + 16, Float16{0x1234});
  kernels.keep_fp16(key.size(), place, key.data(), value.data(), block.data());
  return block;
}

/// A vector as values have it, of a size that is not kept in pairs.
std::vector<Float16> halved(const DecoderKernels& kernels, std::span<const float> x) {
  const auto block = block_with(kernels, 5, x, x);
  const auto* row = block.data() + (kKvBlockTokens + 5) * x.size();
  return {row, row + x.size()};
}

// bfloat16 keeps 8 bits of a number, 1 + 2^-8 is a tie between 1 and 1 + 2^-7; 65,280 is the
// largest that float16 has as well.
TEST(KeepFp16Test, RoundsToWhatTheKernelsReadAndKeepsWhatIsNoNumber) {
  for (const auto& kernels : decoder_kernels_available()) {
    SCOPED_TRACE(std::string(kernels.name));
    const bool is_short = is_by_tiles(kernels, 8);
    const std::vector<float> x{1, -2.5F, 1 + 0x1p-8F, 1 + 0x3p-8F, 1e6F, -1e6F, 0x1p-24F, 0};
    const std::vector<float> whole{1, -2.5F, 1 + 0x1p-8F, 1 + 0x3p-8F, 65504, -65504, 0x1p-24F, 0};
    const std::vector<float> few{1, -2.5F, 1, 1 + 0x1p-6F, 65280, -65280, 0x1p-24F, 0};
    const auto halves = halved(kernels, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(to_float(halves[i]), is_short ? few[i] : whole[i]) << x[i];
    }
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(to_float(halved(kernels, {&infinity, 1})[0]), is_short ? 65280 : 65504);
    for (const std::uint32_t bits : {0x7fc00000U, 0xffffffffU, 0x7f800001U}) {
      const auto none = std::bit_cast<float>(bits);
      EXPECT_TRUE(std::isnan(to_float(halved(kernels, {&none, 1})[0]))) << bits;
    }
  }
}

// In every size: nothing is written elsewhere, and rounding is the number type's.
TEST(KeepFp16Test, EverySizeIsRoundedNumberByNumber) {
  for (const auto& kernels : decoder_kernels_available()) {
    for (std::size_t size = 1; size <= 80; ++size) {
      if (is_by_pairs(kernels, size)) continue;
      auto key = random_row(size, static_cast<unsigned>(size));
      const auto value = random_row(size, static_cast<unsigned>(size + 100));
      if (size % 2 == 0) key[size / 2] *= 1e-6F;
      auto block = block_with(kernels, 5, key, value);
      for (std::size_t c = 0; c < size; ++c) {
        auto& of_key = block[c * kKvBlockTokens + 5];
        auto& of_value = block[(kKvBlockTokens + 5) * size + c];
        ASSERT_EQ(to_float(of_key), kept_value(kernels, size, key[c])) << kernels.name;
        ASSERT_EQ(to_float(of_value), kept_value(kernels, size, value[c])) << kernels.name;
        of_key = of_value = Float16{0x1234};
      }
      for (const auto half : block) ASSERT_EQ(half.bits, 0x1234) << kernels.name << " " << size;
    }
  }
}

// By hand: the largest is within [1, 2), so one is 2^12; the exponent 127 - 12 = 115 has the bits
// 0111 0011, of which those of 0011 go from the lowest on into elements 0, 2, 4 and 6, and those of
// 0111 into 1, 3, 5 and 7. Of values 1 + 2^-8 is a tie, as above.
TEST(KeepFp16Test, InPairsAKeyIsWholeNumbersTimesAPowerOfTwo) {
  constexpr std::size_t kSize = 16;
  std::vector<float> key(kSize), value(kSize);
  key = {1.5F, -1, 0.5F, 0, 0, 0, 0.25F, -0.25F, 0x1p-12F, 0x3p-13F, 0x1p-13F, 0, 0, 0, 0, -1.5F};
  value = {1, -2.5F, 1 + 0x1p-8F, 1 + 0x3p-8F};
  value.resize(kSize);
  const std::vector<int> whole{6145, -4095, 2049, 1, 0, 1, 1024, -1024, 1, 2, 0, 0, 0, 0, 0, -6144};
  const std::vector<float> narrow{1, -2.5F, 1, 1 + 0x1p-6F};
  for (const auto& kernels : decoder_kernels_available()) {
    if (!is_by_pairs(kernels, kSize)) continue;
    for (const std::size_t place : {0U, 5U, 15U}) {
      auto block = block_with(kernels, place, key, value);
      for (std::size_t c = 0; c < kSize; ++c) {
        auto& of_key = block[c / 2 * 32 + place * 2 + c % 2];
        auto& of_value = block[16 * kSize + place / 2 * 2 * kSize + c * 2 + place % 2];
        EXPECT_EQ(static_cast<std::int16_t>(of_key.bits), whole[c]) << c;
        EXPECT_EQ(to_float(Bfloat16{of_value.bits}), c < 4 ? narrow[c] : 0) << c;
        of_key = of_value = Float16{0x1234};
      }
      for (const auto half : block) ASSERT_EQ(half.bits, 0x1234) << place;
    }
  }
}

class PagedAttentionTest : public testing::TestWithParam<std::size_t> {};

// Weights in bfloat16 are within 2^-9 of themselves, and so is their sum: what they weigh moves by
// at most 2^-8 of the values' mean size. Rounded keys may make scores grow along the sequence.
TEST_P(PagedAttentionTest, IsItsFormula) {
  const std::size_t size = GetParam();
  const auto values = random_row(kLength * size, 6);
  const auto queries = random_row(24 * size, 7, 1 / std::sqrt(static_cast<float>(size)));
  const auto ranges = ranges_of(24);
  for (const bool grows : {false, true}) {
    auto keys = random_row(kLength * size, 5);
    for (std::size_t i = 0; grows && i < keys.size(); ++i) {
      keys[i] *= 4 * static_cast<float>(i) / static_cast<float>(keys.size());
    }
    for (const auto& kernels : decoder_kernels_available()) {
      const Cache cache(kernels, size, keys, values);
      const bool is_rounded = is_by_tiles(kernels, size) || is_by_pairs(kernels, size);
      for (const float cap : {0.0F, 2.0F}) {
        const auto out = attend(kernels, cache, queries, ranges, cap, 0, 24);
        for (std::size_t i = 0; i < 24; ++i) {
          const auto expected = by_formula(
              kernels, cache, std::span(queries).subspan(i * size, size), ranges[i], cap);
          for (std::size_t c = 0; c < size; ++c) {
            const double near = (is_rounded ? 0x1p-8 * expected[c].mean_size : 0) + 3e-5;
            ASSERT_NEAR(out[i * size + c], expected[c].value, near)
                << kernels.name << " row " << i << " column " << c;
          }
        }
      }
    }
  }
}

TEST_P(PagedAttentionTest, ARowIsTheSameBitsInAnyStrip) {
  const std::size_t size = GetParam();
  const auto keys = random_row(kLength * size, 5);
  const auto values = random_row(kLength * size, 6);
  const auto queries = random_row(40 * size, 7, 2 / std::sqrt(static_cast<float>(size)));
  const auto ranges = ranges_of(40);
  for (const auto& kernels : decoder_kernels_available()) {
    SCOPED_TRACE(std::string(kernels.name));
    const Cache cache(kernels, size, keys, values);
    for (const float cap : {0.0F, 2.0F}) {
      const auto together = attend(kernels, cache, queries, ranges, cap, 0, 40);
      ASSERT_TRUE(std::isfinite(together.back()));
      for (const std::size_t count : {1U, 2U, 3U, 4U, 17U, 24U}) {
        for (std::size_t first = 0; first < 40; first += count) {
          const std::size_t rows = std::min<std::size_t>(count, 40 - first);
          const auto out = attend(kernels, cache, queries, ranges, cap, first, rows);
          const auto same = std::span(together).subspan(first * size, rows * size);
          ASSERT_EQ(bits_of(out), bits_of(same)) << count << " rows from " << first;
        }
      }
    }
  }
}

// Products and sums below the smallest normal number, and zeros; of a zero's sign only tiles are
// held to be sure, which take heads of up to 256.
TEST_P(PagedAttentionTest, SoIsARowOfTinyNumbers) {
  const std::size_t size = GetParam();
  auto keys = random_row(kLength * size, 5, 1e-6F);
  auto values = random_row(kLength * size, 6, 1e-7F);
  auto queries = random_row(24 * size, 7, 1e-36F);
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = i % 2 == 0 ? -0.0F : 0.0F;
  // Every other row has scores of about 80 at multiples of 30, and weights of e^-80 elsewhere.
  for (std::size_t p = 0; p < kLength; p += 30) keys[p * size] = 100;
  for (std::size_t p = 0; p < kLength; p += 30) values[p * size + size / 2] = 0;
  for (std::size_t i = 0; i < 24; i += 2) queries[i * size] = 0.8F;
  const auto ranges = ranges_of(24);
  for (const auto& kernels : decoder_kernels_available()) {
    SCOPED_TRACE(std::string(kernels.name));
    const Cache cache(kernels, size, keys, values);
    const auto together = attend(kernels, cache, queries, ranges, 0, 0, 24);
    for (const std::size_t count : {1U, 5U}) {
      for (std::size_t first = 0; first + count <= 24; first += count) {
        const auto out = attend(kernels, cache, queries, ranges, 0, first, count);
        const auto same = std::span(together).subspan(first * size, count * size);
        if (is_by_tiles(kernels, size)) {
          ASSERT_EQ(bits_of(out), bits_of(same)) << first;
        }
        for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], same[i]) << first;
      }
    }
  }
}

// A row that sees a key that is no number is none; one that sees such a value is none in its
// column; all others are what they are without.
TEST_P(PagedAttentionTest, WhatIsNoNumberIsNotLostAndSpoilsNoRowThatDoesNotSeeIt) {
  const std::size_t size = GetParam();
  const std::size_t column = size / 2;
  const auto keys = random_row(kLength * size, 5);
  const auto values = random_row(kLength * size, 6);
  const auto queries = random_row(24 * size, 7, 1 / std::sqrt(static_cast<float>(size)));
  const auto ranges = ranges_of(24);
  for (const auto& kernels : decoder_kernels_available()) {
    SCOPED_TRACE(std::string(kernels.name));
    const Cache whole(kernels, size, keys, values);
    for (const std::size_t count : {3U, 24U}) {
      const std::size_t first = 24 - count;
      const auto expected = attend(kernels, whole, queries, ranges, 0, first, count);
      for (const std::uint32_t place : {0U, 128U, 250U, 285U, 294U}) {
        for (const bool is_key : {true, false}) {
          Cache broken = whole;
          if (is_key) {
            broken.set_key(place, column, kNone);
          } else {
            broken.set_value(place, column, kNone);
          }
          const auto out = attend(kernels, broken, queries, ranges, 0, first, count);
          for (std::size_t i = 0; i < count; ++i) {
            const auto& range = ranges[first + i];
            const bool sees = range.begin <= place && place < range.end;
            for (std::size_t c = 0; c < size; ++c) {
              const float value = out[i * size + c];
              if (sees && (is_key || c == column)) {
                ASSERT_TRUE(std::isnan(value)) << place << " row " << i;
              } else {
                ASSERT_EQ(value, expected[i * size + c]) << place << " row " << i;
              }
            }
          }
        }
      }
    }
  }
}

// Of a part of a tile, of whole ones and of an odd number; of heads that have one tile of rows and
// that go through none; of one, two and more sums of a key, and of none in pairs.
INSTANTIATE_TEST_SUITE_P(Sizes, PagedAttentionTest,
                         testing::Values(5U, 20U, 64U, 80U, 128U, 136U, 256U, 272U),
                         [](const auto& size) { return std::to_string(size.param); });

}  // namespace
}  // namespace muster::engine
