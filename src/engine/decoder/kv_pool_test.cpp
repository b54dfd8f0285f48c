// Keys and values in 8 bits: what is kept of them, and attention over it in every instruction set.

#include "engine/decoder/kv_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
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

constexpr std::uint32_t kLength = 104;
constexpr std::size_t kLayers = 2;
constexpr std::size_t kHeads = 3;
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_row(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> row(size);
  for (auto& value : row) value = normal(random);
  return row;
}

/// A head's vector as 8 bits keep it, by the formula: max |x| / 127 is a step, and each value is
/// the nearest number of steps.
std::vector<float> as_kept(std::span<const float> x) {
  float most = 0;
  for (const float value : x) most = std::max(most, std::abs(value));
  const float step = most / 127.0F;
  std::vector<float> kept;
  for (const float value : x) {
    kept.push_back(step == 0 ? 0 : step * std::nearbyint(value * (1.0F / step)));
  }
  return kept;
}

// By hand. A step is 1 where the largest is 127, and ties go to the even number: 0.5 to 0, 1.5 to
// 2, 2.5 to 2. 254 makes a step of 2, and 3 is a tie between 1 and 2 of them.
TEST(QuantizeHeadTest, RoundsToTheNearestStepAndTiesToEven) {
  using Quants = std::vector<std::int8_t>;
  for (const auto& kernels : decoder_kernels_available()) {
    SCOPED_TRACE(std::string(kernels.name));
    const std::vector<float> ones{127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -126.75F, 0, -0.0F, 1, 2};
    Quants quants(ones.size());
    EXPECT_EQ(kernels.quantize_head(ones.size(), ones.data(), quants.data()), 1.0F);
    EXPECT_EQ(quants, (Quants{127, 0, 2, 2, 0, -2, -127, 0, 0, 1, 2}));
    const std::vector<float> twos{3, -254, 5};
    quants.resize(twos.size());
    EXPECT_EQ(kernels.quantize_head(twos.size(), twos.data(), quants.data()), 2.0F);
    EXPECT_EQ(quants, (Quants{2, -127, 2}));
  }
}

// In every size, whatever vectors the instruction set has: nothing is written behind the end.
TEST(QuantizeHeadTest, EverySetOfInstructionsGivesTheSameBits) {
  for (std::size_t size = 1; size <= 80; ++size) {
    const auto x = random_row(size, static_cast<unsigned>(size));
    const auto kept = as_kept(x);
    for (const auto& kernels : decoder_kernels_available()) {
      std::vector<std::int8_t> quants(size + 16, 99);
      const float step = kernels.quantize_head(size, x.data(), quants.data());
      for (std::size_t i = 0; i < size; ++i) {
        ASSERT_EQ(step * static_cast<float>(quants[i]), kept[i]) << kernels.name << " " << size;
      }
      for (std::size_t i = size; i < quants.size(); ++i) ASSERT_EQ(quants[i], 99) << kernels.name;
    }
  }
}

// Zeros are zeros, as is what has a step without a reciprocal (1e-38 / 127); a value that is not
// finite is in the step, wherever it stands.
TEST(QuantizeHeadTest, NothingAndWhatIsNotFinite) {
  for (const auto& kernels : decoder_kernels_available()) {
    SCOPED_TRACE(std::string(kernels.name));
    for (const float value : {0.0F, 1e-38F}) {
      const std::vector<float> x(20, value);
      std::vector<std::int8_t> quants(x.size(), 1);
      EXPECT_TRUE(std::isfinite(kernels.quantize_head(x.size(), x.data(), quants.data())));
      EXPECT_EQ(quants, std::vector<std::int8_t>(x.size(), 0));
    }
    for (const float value :
         {kNone, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      for (const std::size_t place : {0U, 7U, 16U, 19U}) {
        auto x = random_row(20, 3);
        x[place] = value;
        std::vector<std::int8_t> quants(x.size());
        EXPECT_TRUE(std::isnan(kernels.quantize_head(x.size(), x.data(), quants.data())))
            << value << " at " << place;
      }
    }
  }
}

/// A pool in 8 bits with the positions of one sequence, in blocks that do not follow each other.
struct Kept {
  DecoderSpec spec;
  std::vector<std::uint32_t> blocks;
  std::vector<float> keys;  // [position, layer, head, size]
  std::vector<float> values;
  KvPool pool;

  explicit Kept(std::size_t size, std::vector<std::uint32_t> in_blocks = {3, 0, 4, 6, 1, 7, 2})
      : blocks(std::move(in_blocks)),
        keys(random_row(kLength * kLayers * kHeads * size, 5)),
        values(random_row(kLength * kLayers * kHeads * size, 6)) {
    spec.layer_count = kLayers;
    spec.kv_head_count = kHeads;
    spec.head_size = static_cast<std::uint32_t>(size);
    pool = KvPool(spec, 8, KvCacheDtype::Int8, best_decoder_kernels());
  }

  std::size_t at(std::size_t position, std::size_t layer, std::size_t head) const {
    return ((position * kLayers + layer) * kHeads + head) * spec.head_size;
  }

  // In this order of positions.
  void put(std::span<const std::size_t> positions) {
    for (const auto p : positions) {
      for (std::size_t layer = 0; layer < kLayers; ++layer) {
        pool.put(blocks[p / kKvBlockTokens], p % kKvBlockTokens, layer,
                 keys.data() + at(p, layer, 0), values.data() + at(p, layer, 0));
      }
    }
  }
  void put_all() {
    std::vector<std::size_t> all(kLength);
    for (std::size_t p = 0; p < kLength; ++p) all[p] = p;
    put(all);
  }

  std::vector<float> kept_of(const std::vector<float>& from, std::size_t position,
                             std::size_t layer, std::size_t head) const {
    return as_kept(std::span(from).subspan(at(position, layer, head), spec.head_size));
  }
};

/// softmax(query keys^T) values in double, of what 8 bits keep.
std::vector<double> attention_by_formula(const Kept& kept, std::size_t layer, std::size_t head,
                                         const AttentionRow& row, double cap) {
  const std::size_t size = kept.spec.head_size;
  std::vector<double> out(size);
  double total = 0;
  for (std::size_t p = row.begin; p < row.end; ++p) {
    const auto key = kept.kept_of(kept.keys, p, layer, head);
    const auto value = kept.kept_of(kept.values, p, layer, head);
    double score = 0;
    for (std::size_t c = 0; c < size; ++c) score += double{row.query[c]} * key[c];
    if (cap > 0) score = cap * std::tanh(score / cap);
    total += std::exp(score);
    for (std::size_t c = 0; c < size; ++c) out[c] += std::exp(score) * value[c];
  }
  for (auto& value : out) value /= total;
  return out;
}

class KvPoolTest : public testing::TestWithParam<std::size_t> {};

TEST_P(KvPoolTest, AttentionOver8BitsIsItsFormulaAndARowIsTheSameInAnyCompany) {
  const std::size_t size = GetParam();
  Kept kept(size);
  kept.put_all();
  auto queries = random_row(9 * size, 7);
  for (auto& value : queries) value /= std::sqrt(static_cast<float>(size));
  for (const auto& kernels : decoder_kernels_available()) {
    SCOPED_TRACE(std::string(kernels.name));
    for (const float cap : {0.0F, 2.0F}) {
      const auto head = kept.pool.quant_head(kept.blocks, 1, 2);
      std::vector<float> out(queries.size());
      std::vector<float> alone(queries.size());
      std::vector<float> scratch(kernels.attention_rows * 112);
      std::vector<AttentionRow> rows;
      for (std::uint32_t i = 0; i < 9; ++i) {
        rows.push_back({.query = queries.data() + i * size,
                        .out = out.data() + i * size,
                        .begin = i % 3 == 0 ? i : 0,
                        .end = 12 + 11 * i});
      }
      kernels.attend_int8(head, rows, {cap}, scratch.data());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto expected = attention_by_formula(kept, 1, 2, rows[i], cap);
        for (std::size_t c = 0; c < size; ++c) {
          ASSERT_NEAR(rows[i].out[c], expected[c], 1e-5) << "row " << i;
        }
        rows[i].out = alone.data() + i * size;
        kernels.attend_int8(head, std::span(rows).subspan(i, 1), {cap}, scratch.data());
      }
      EXPECT_EQ(out, alone);
    }
  }
}

// Sizes of whole vectors, of parts of one, and below one.
INSTANTIATE_TEST_SUITE_P(Sizes, KvPoolTest, testing::Values(4U, 20U, 64U, 80U),
                         [](const auto& size) { return std::to_string(size.param); });

// What is kept of a token is the same bits in whatever block and whenever it comes, and whatever
// was there before.
TEST(KvPool, ATokenIsKeptAloneWhateverIsAroundIt) {
  constexpr std::size_t kSize = 20;
  Kept first(kSize);
  first.put_all();
  Kept second(kSize, {1, 4, 2, 0, 5, 3, 6});
  std::vector<std::size_t> backwards(kLength);
  for (std::size_t p = 0; p < kLength; ++p) backwards[p] = kLength - 1 - p;
  auto others = std::exchange(second.keys, random_row(second.keys.size(), 8));
  second.put_all();
  second.keys = std::move(others);
  second.put(backwards);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    for (std::size_t h = 0; h < kHeads; ++h) {
      const auto one = first.pool.quant_head(first.blocks, layer, h);
      const auto other = second.pool.quant_head(second.blocks, layer, h);
      for (std::size_t p = 0; p < kLength; ++p) {
        const std::size_t block = p / kKvBlockTokens;
        const std::size_t place = p % kKvBlockTokens;
        ASSERT_EQ(one.key_scales(block)[place], other.key_scales(block)[place]);
        ASSERT_EQ(one.value_scales(block)[place], other.value_scales(block)[place]);
        const auto key = first.kept_of(first.keys, p, layer, h);
        const auto value = first.kept_of(first.values, p, layer, h);
        for (std::size_t c = 0; c < kSize; ++c) {
          const auto of_key = c * kKvBlockTokens + place;
          const auto of_value = place * kSize + c;
          ASSERT_EQ(one.keys(block)[of_key], other.keys(block)[of_key]);
          ASSERT_EQ(one.values(block)[of_value], other.values(block)[of_value]);
          ASSERT_EQ(one.key_scales(block)[place] * static_cast<float>(one.keys(block)[of_key]),
                    key[c]);
          ASSERT_EQ(
              one.value_scales(block)[place] * static_cast<float>(one.values(block)[of_value]),
              value[c]);
        }
      }
    }
  }
}

// Of two rows of one strip one sees all positions, the other all but `place` and those behind it,
// or all but the first: only the one that sees it is none.
TEST(KvPool, AKeyOrAValueThatIsNoNumberIsNotLostAndSpoilsNoRowThatDoesNotSeeIt) {
  constexpr std::size_t kSize = 20;
  Kept whole(kSize);
  whole.put_all();
  const auto query = random_row(kSize, 7);
  for (const std::uint32_t place : {0U, 20U, 103U}) {
    for (const bool is_key : {true, false}) {
      Kept broken(kSize);
      (is_key ? broken.keys : broken.values)[broken.at(place, 1, 2) + 3] = kNone;
      broken.put_all();
      for (const auto& kernels : decoder_kernels_available()) {
        SCOPED_TRACE(std::string(kernels.name) + (is_key ? ": a key at " : ": a value at ") +
                     std::to_string(place));
        std::vector<float> scratch(kernels.attention_rows * 112);
        std::vector<float> sees(kSize);
        std::vector<float> does_not(kSize);
        std::vector<float> expected(kSize);
        AttentionRow rows[] = {
            {.query = query.data(), .out = sees.data(), .begin = 0, .end = kLength},
            {.query = query.data(),
             .out = does_not.data(),
             .begin = place == 0 ? 1U : 0U,
             .end = place == 0 ? kLength : place}};
        kernels.attend_int8(broken.pool.quant_head(broken.blocks, 1, 2), std::span(rows), {},
                            scratch.data());
        for (const float value : sees) EXPECT_TRUE(std::isnan(value));
        rows[1].out = expected.data();
        kernels.attend_int8(whole.pool.quant_head(whole.blocks, 1, 2), std::span(rows).subspan(1),
                            {}, scratch.data());
        EXPECT_EQ(does_not, expected);
      }
    }
  }
}

// What is fetched ahead is what attention reads, in each type of numbers.
TEST(KvPool, BytesOfAHeadAreItsKeysAndValuesAndLayersAreAsFarApart) {
  const Kept kept(20);
  for (const auto dtype : {KvCacheDtype::Fp32, KvCacheDtype::Fp16, KvCacheDtype::Int8}) {
    const KvPool pool(kept.spec, 8, dtype, best_decoder_kernels());
    const void* begin = dtype == KvCacheDtype::Fp32 ? pool.wide_head(kept.blocks, 1, 2).keys(3)
                        : dtype == KvCacheDtype::Fp16
                            ? static_cast<const void*>(pool.head(kept.blocks, 1, 2).keys(3))
                            : pool.quant_head(kept.blocks, 1, 2).keys(3);
    const auto bytes = pool.bytes_of(kept.blocks[3], 1, 2);
    EXPECT_EQ(bytes.data(), begin);
    const std::size_t element = dtype == KvCacheDtype::Fp32   ? 4
                                : dtype == KvCacheDtype::Fp16 ? 2
                                                              : 1;
    EXPECT_EQ(bytes.size(), 2U * 20 * 16 * element);
    EXPECT_EQ(pool.bytes_of(kept.blocks[3], 0, 2).data() + pool.layer_bytes(), bytes.data());
  }
}

// By hand: 2 x 2 layers x 3 heads x 16 positions are 192 vectors, of 20 bytes and a scale of 4.
TEST(KvPool, ABlockIsItsVectorsAndTheirScales) {
  const Kept kept(20);
  EXPECT_EQ(kept.pool.block_bytes(), 192U * 24);
  EXPECT_EQ(kv_block_bytes(kept.spec, KvCacheDtype::Fp16), 192U * 40);
  EXPECT_EQ(kv_block_bytes(kept.spec, KvCacheDtype::Fp32), 192U * 80);
}

}  // namespace
}  // namespace muster::engine
