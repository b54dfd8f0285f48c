#include "engine/ops/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace muster::engine {
namespace {

std::vector<float> random_values(std::size_t count, float spread, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-spread, spread);
  std::vector<float> values(count);
  for (auto& value : values) value = distribution(generator);
  return values;
}

// softmax(q k^T / sqrt(d) + bias) v, as the paper writes it, in double.
std::vector<double> reference_attention(const AttentionShape& shape, const std::vector<float>& qkv,
                                        std::size_t length) {
  const std::size_t size = shape.head_size;
  const std::size_t hidden = shape.head_count * size;
  const auto at = [&](std::size_t row, std::size_t column) {
    return static_cast<double>(qkv[row * 3 * hidden + column]);
  };
  std::vector<double> out(length * hidden);
  for (std::size_t head = 0; head < shape.head_count; ++head) {
    for (std::size_t i = 0; i < length; ++i) {
      std::vector<double> weights(length);
      double sum = 0;
      for (std::size_t j = 0; j < length; ++j) {
        double score = 0;
        for (std::size_t c = 0; c < size; ++c) {
          score += at(i, head * size + c) * at(j, hidden + head * size + c);
        }
        score /= std::sqrt(static_cast<double>(size));
        if (shape.relative_bias != nullptr) {
          score += shape.relative_bias[head * shape.relative_bias_stride +
                                       shape.relative_bias_stride / 2 + j - i];
        }
        weights[j] = std::exp(score);
        sum += weights[j];
      }
      for (std::size_t j = 0; j < length; ++j) {
        for (std::size_t c = 0; c < size; ++c) {
          out[i * hidden + head * size + c] +=
              weights[j] / sum * at(j, 2 * hidden + head * size + c);
        }
      }
    }
  }
  return out;
}

class KernelsTest : public testing::TestWithParam<const Kernels*> {};

TEST_P(KernelsTest, AttentionIsTheFormulaForAnyLengthAndHeadSize) {
  for (const std::uint32_t head_size : {32U, 64U, 7U, 16U, 40U, 80U}) {
    for (const std::size_t length : {1U, 2U, 7U, 16U, 20U, 33U, 129U}) {
      for (const bool is_biased : {false, true}) {
        SCOPED_TRACE(testing::Message() << head_size << " x " << length << " bias " << is_biased);
        AttentionShape shape{.head_count = 3, .head_size = head_size};
        const std::size_t hidden = 3 * head_size;
        const auto bias = random_values(3 * (2 * length - 1), 2, 5);
        if (is_biased) {
          shape.relative_bias = bias.data();
          shape.relative_bias_stride = 2 * length - 1;
        }
        const auto qkv = random_values(length * 3 * hidden, 3, 7);
        std::vector<const float*> rows;
        for (std::size_t i = 0; i < length; ++i) rows.push_back(qkv.data() + i * 3 * hidden);
        std::vector<float> out(length * hidden);
        std::vector<float> scratch(GetParam()->attention_scratch_size(shape, length));
        GetParam()->attend_fp32(shape, whole_attention(shape), rows, out.data(), scratch.data());
        const auto expected = reference_attention(shape, qkv, length);
        for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 1e-5) << i;
      }
    }
  }
}

TEST_P(KernelsTest, AttentionSurvivesScoresFarApart) {
  // Scores of +-10,000: every weight but the largest is 0, and nothing overflows.
  const AttentionShape shape{.head_count = 1, .head_size = 1};
  const std::vector<float> qkv{100, 100, 5, 100, -100, 9, -100, 1, 7};
  const std::vector<const float*> rows{&qkv[0], &qkv[3], &qkv[6]};
  std::vector<float> out(3);
  std::vector<float> scratch(GetParam()->attention_scratch_size(shape, 3));
  GetParam()->attend_fp32(shape, whole_attention(shape), rows, out.data(), scratch.data());
  EXPECT_FLOAT_EQ(out[0], 5);  // q 100: keys 100, -100, 1
  EXPECT_FLOAT_EQ(out[1], 5);
  EXPECT_FLOAT_EQ(out[2], 9);  // q -100: the key -100
}

// It is in one key of one text, which every row of the text sees.
TEST_P(KernelsTest, AKeyThatIsNoNumberIsNotLost) {
  const AttentionShape shape{.head_count = 1, .head_size = 8};
  const std::size_t length = 21;
  for (const std::size_t place : {0U, 9U, 20U}) {
    auto qkv = random_values(length * 24, 3, 12);
    qkv[place * 24 + 8 + 3] = std::numeric_limits<float>::quiet_NaN();
    std::vector<const float*> rows;
    for (std::size_t i = 0; i < length; ++i) rows.push_back(qkv.data() + i * 24);
    std::vector<float> out(length * 8);
    std::vector<float> scratch(GetParam()->attention_scratch_size(shape, length));
    GetParam()->attend_fp32(shape, whole_attention(shape), rows, out.data(), scratch.data());
    for (const float value : out) ASSERT_TRUE(std::isnan(value)) << "a key at " << place;
  }
}

TEST_P(KernelsTest, Bf16AttentionIsTheSameArithmeticOnRoundedInputs) {
  const AttentionShape shape{.head_count = 2, .head_size = 32};
  const std::size_t length = 21;
  auto qkv = random_values(length * 192, 3, 11);
  std::vector<Bfloat16> narrow(qkv.size());
  for (std::size_t i = 0; i < qkv.size(); ++i) {
    narrow[i] = to_bfloat16(qkv[i]);
    qkv[i] = to_float(narrow[i]);
  }
  std::vector<const float*> rows;
  std::vector<const Bfloat16*> narrow_rows;
  for (std::size_t i = 0; i < length; ++i) {
    rows.push_back(qkv.data() + i * 192);
    narrow_rows.push_back(narrow.data() + i * 192);
  }
  std::vector<float> out(length * 64);
  std::vector<Bfloat16> narrow_out(length * 64);
  std::vector<float> scratch(GetParam()->attention_scratch_size(shape, length));
  GetParam()->attend_fp32(shape, whole_attention(shape), rows, out.data(), scratch.data());
  GetParam()->attend_bf16(shape, whole_attention(shape), narrow_rows, narrow_out.data(),
                          scratch.data());
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(narrow_out[i].bits, to_bfloat16(out[i]).bits) << i;
  }
}

// In parts as lanes get them: heads apart, and of each head the queries in three, with the keys of
// the call before where the head is the same.
TEST_P(KernelsTest, PartsOfAttentionHaveTheBitsOfTheWhole) {
  for (const std::uint32_t head_size : {32U, 7U}) {
    for (const std::size_t length : {1U, 7U, 20U, 129U}) {
      SCOPED_TRACE(testing::Message() << head_size << " x " << length);
      const auto bias = random_values(3 * (2 * length - 1), 2, 5);
      const AttentionShape shape{.head_count = 3,
                                 .head_size = head_size,
                                 .relative_bias = bias.data(),
                                 .relative_bias_stride = 2 * length - 1};
      const std::size_t hidden = 3 * head_size;
      const auto qkv = random_values(length * 3 * hidden, 3, 7);
      std::vector<Bfloat16> narrow;
      for (const float value : qkv) narrow.push_back(to_bfloat16(value));
      std::vector<const float*> rows;
      std::vector<const Bfloat16*> narrow_rows;
      for (std::size_t i = 0; i < length; ++i) {
        rows.push_back(qkv.data() + i * 3 * hidden);
        narrow_rows.push_back(narrow.data() + i * 3 * hidden);
      }
      std::vector<float> all(length * hidden);
      std::vector<float> parts(length * hidden);
      std::vector<Bfloat16> narrow_all(length * hidden);
      std::vector<Bfloat16> narrow_parts(length * hidden);
      std::vector<float> scratch(GetParam()->attention_scratch_size(shape, length));
      std::vector<float> narrow_scratch(scratch.size());
      GetParam()->attend_fp32(shape, whole_attention(shape), rows, all.data(), scratch.data());
      GetParam()->attend_bf16(shape, whole_attention(shape), narrow_rows, narrow_all.data(),
                              narrow_scratch.data());
      for (std::uint32_t head = 3; head-- > 0;) {
        for (const std::size_t query_part : {2U, 0U, 1U}) {
          const AttentionPart part{.head_begin = head,
                                   .head_end = head + 1,
                                   .query_part = query_part,
                                   .query_part_count = 3,
                                   .is_packed = query_part != 2};
          GetParam()->attend_fp32(shape, part, rows, parts.data(), scratch.data());
          GetParam()->attend_bf16(shape, part, narrow_rows, narrow_parts.data(),
                                  narrow_scratch.data());
        }
      }
      for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(parts[i], all[i]) << i;
        ASSERT_EQ(narrow_parts[i].bits, narrow_all[i].bits) << i;
      }
    }
  }
}

TEST_P(KernelsTest, LayerNormAddsNormalisesAndRounds) {
  for (const std::size_t size : {1U, 5U, 16U, 37U, 384U}) {
    SCOPED_TRACE(size);
    const auto hidden = random_values(2 * size, 4, 1);
    const auto update = random_values(2 * size, 4, 2);
    const auto weight = random_values(size, 2, 3);
    const auto bias = random_values(size, 2, 4);
    const LayerNormShape shape{weight.data(), bias.data(), size, 1e-5F};

    auto wide = hidden;
    GetParam()->add_layer_norm_fp32(shape, 2, wide.data(), update.data(), nullptr);
    for (std::size_t row = 0; row < 2; ++row) {
      double mean = 0;
      double variance = 0;
      const auto sum = [&](std::size_t c) {
        return static_cast<double>(hidden[row * size + c]) + update[row * size + c];
      };
      for (std::size_t c = 0; c < size; ++c) mean += sum(c) / static_cast<double>(size);
      for (std::size_t c = 0; c < size; ++c) {
        variance += (sum(c) - mean) * (sum(c) - mean) / static_cast<double>(size);
      }
      for (std::size_t c = 0; c < size; ++c) {
        const double expected = (sum(c) - mean) / std::sqrt(variance + 1e-5) * weight[c] + bias[c];
        ASSERT_NEAR(wide[row * size + c], expected, 4e-6) << row << " " << c;
      }
    }
  }
}

TEST_P(KernelsTest, Bf16LayerNormKeepsTheSumWideAndAlsoRoundsIt) {
  const std::vector<float> weight(37, 1.5F);
  const std::vector<float> bias(37, 0.25F);
  const LayerNormShape shape{weight.data(), bias.data(), 37, 1e-12F};
  auto hidden = random_values(37, 4, 1);
  auto copy = hidden;
  std::vector<float> update(37);
  std::vector<Bfloat16> narrow_update(37);
  for (std::size_t i = 0; i < 37; ++i) {
    narrow_update[i] = to_bfloat16(static_cast<float>(i) / 7);
    update[i] = to_float(narrow_update[i]);
  }
  std::vector<Bfloat16> narrow(37);
  GetParam()->add_layer_norm_fp32(shape, 1, hidden.data(), update.data(), nullptr);
  GetParam()->add_layer_norm_bf16(shape, 1, copy.data(), narrow_update.data(), narrow.data());
  for (std::size_t i = 0; i < 37; ++i) {
    EXPECT_EQ(copy[i], hidden[i]);
    EXPECT_EQ(narrow[i].bits, to_bfloat16(hidden[i]).bits);
  }
}

TEST(Bfloat16, RoundsToNearestEven) {
  EXPECT_EQ(to_bfloat16(1.0F).bits, 0x3f80);
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F).bits, 0x3f80);  // half way: to the even one below
  EXPECT_EQ(to_bfloat16(1.0F + 3 * 0x1p-8F).bits, 0x3f82);
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F + 0x1p-20F).bits, 0x3f81);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::nanf("")))));
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, KernelsTest, testing::ValuesIn(kernels_available()),
                         [](const auto& kernels) { return std::string(kernels.param->name); });

}  // namespace
}  // namespace muster::engine
