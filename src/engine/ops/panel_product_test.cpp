#include "engine/ops/panel_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ops/amx_tiles.h"
#include "engine/ops/decoder_kernels.h"

namespace muster::engine {
namespace {

constexpr WeightFormat kFormats[] = {WeightFormat::Fp32, WeightFormat::Bf16, WeightFormat::Q4_0,
                                     WeightFormat::Q4_1, WeightFormat::Q8_0, WeightFormat::Int8};

// Of Int8 four blocks that share a scale and one more.
std::size_t inputs_of(WeightFormat format, std::size_t in) {
  return format == WeightFormat::Int8 ? 5 * kTransformedInputs : in;
}

/// 64 values through the Hadamard transform, by its definition.
std::vector<double> transformed(const float* block) {
  std::vector<double> values(kTransformedInputs);
  for (std::size_t k = 0; k < values.size(); ++k) {
    for (std::size_t j = 0; j < values.size(); ++j) {
      values[k] += (std::popcount(j & k) % 2 == 0 ? 1 : -1) * double{block[j]} / 8;
    }
  }
  return values;
}

/// What is left of a row of floats in transformed blocks with one scale for four of them.
std::vector<double> in_int8(const float* row, std::size_t in) {
  std::vector<double> kept(in);
  for (std::size_t k = 0; k < in; k += kTransformedInputs) {
    const auto block = transformed(row + k);
    std::copy(block.begin(), block.end(), kept.begin() + static_cast<std::ptrdiff_t>(k));
  }
  constexpr std::size_t kGroup = kScaledBlocks * kTransformedInputs;
  for (std::size_t begin = 0; begin < in; begin += kGroup) {
    const std::size_t end = std::min(in, begin + kGroup);
    double most = 0;
    for (std::size_t k = begin; k < end; ++k) most = std::max(most, std::abs(kept[k]));
    for (std::size_t k = begin; k < end; ++k) {
      kept[k] = std::round(kept[k] / (most / 127)) * (most / 127);
    }
  }
  return kept;
}

/// A weight as a file has it, its values (of Int8, those that its quants are), and it packed.
class TestWeight {
 public:
  TestWeight(WeightFormat format, std::size_t out, std::size_t in, std::mt19937& random,
             bool is_interleaved = false)
      : packed(format, out, in, is_interleaved), values(out * in) {
    if (is_blocked(format) && format != WeightFormat::Int8) {
      fill_blocks(format, out, in, random);
    } else {
      fill_floats(format, out, in, random);
    }
    for (std::size_t o = 0; o < out && format == WeightFormat::Int8; ++o) {
      const auto kept = in_int8(values.data() + o * in, in);
      for (std::size_t k = 0; k < in; ++k) values[o * in + k] = static_cast<float>(kept[k]);
    }
  }

  PanelWeight packed;
  std::vector<float> values;  // [out, in]

 private:
  void fill_floats(WeightFormat format, std::size_t out, std::size_t in, std::mt19937& random) {
    std::normal_distribution<float> normal;
    for (auto& value : values) {
      value = normal(random);
      if (format == WeightFormat::Bf16) value = to_float(to_bfloat16(value));
    }
    for (std::size_t panel = 0; panel < packed.panel_count(); ++panel) {
      const float* rows[kPanelOutputs] = {};
      for (std::size_t o = panel * kPanelOutputs; o < std::min(out, (panel + 1) * 16); ++o) {
        rows[o % kPanelOutputs] = values.data() + o * in;
      }
      pack_panel(rows, panel, packed);
    }
  }

  // Random bytes with a scale that is a small number; the values by ggml's own formula.
  void fill_blocks(WeightFormat format, std::size_t out, std::size_t in, std::mt19937& random) {
    const std::size_t size = file_block_bytes(format);
    std::vector<std::byte> file(out * in / kBlockInputs * size);
    for (auto& byte : file) byte = static_cast<std::byte>(random());
    std::uniform_real_distribution<float> uniform(0.001F, 0.1F);
    for (std::size_t b = 0; b < out * in / kBlockInputs; ++b) {
      auto* block = file.data() + b * size;
      const Float16 scale = to_float16(uniform(random));
      const Float16 minimum = to_float16(-uniform(random));
      std::memcpy(block, &scale, 2);
      if (format == WeightFormat::Q4_1) std::memcpy(block + 2, &minimum, 2);
      const std::size_t head = format == WeightFormat::Q4_1 ? 4 : 2;
      for (std::size_t j = 0; j < kBlockInputs; ++j) {
        values[b * kBlockInputs + j] =
            value_of(format, to_float(scale), to_float(minimum), block + head, j);
      }
    }
    const std::size_t row = in / kBlockInputs * size;
    for (std::size_t panel = 0; panel < packed.panel_count(); ++panel) {
      const std::byte* rows[kPanelOutputs] = {};
      for (std::size_t o = panel * kPanelOutputs; o < std::min(out, (panel + 1) * 16); ++o) {
        rows[o % kPanelOutputs] = file.data() + o * row;
      }
      pack_panel(rows, panel, packed);
    }
  }

  static float value_of(WeightFormat format, float scale, float minimum, const std::byte* quants,
                        std::size_t j) {
    if (format == WeightFormat::Q8_0) {
      return scale * static_cast<float>(static_cast<std::int8_t>(quants[j]));
    }
    const auto byte = static_cast<unsigned>(quants[j % 16]);
    const auto q = static_cast<float>(j < 16 ? byte & 15U : byte >> 4U);
    return format == WeightFormat::Q4_1 ? scale * q + minimum : scale * (q - 8);
  }
};

/// Rows in every form, and what the products see of each value.
class TestRows {
 public:
  TestRows(const DecoderKernels& kernels, std::size_t count, std::size_t in, std::mt19937& random)
      : in_(in),
        even_((in + 1) / 2 * 2),
        fp32_(count * in),
        bf16_(count * even_),
        blocks_(count * (in / kBlockInputs)),
        transformed_(count * (in / kTransformedInputs)),
        count_(count) {
    std::normal_distribution<float> normal;
    for (auto& value : fp32_) value = normal(random);
    for (std::size_t r = 0; r < count; ++r) form(kernels, r);
  }

  void put(const DecoderKernels& kernels, std::size_t row, std::size_t k, float value) {
    fp32_[row * in_ + k] = value;
    form(kernels, row);
  }

  ProductRows rows(std::size_t begin, std::size_t count) const {
    return {count, fp32_.data() + begin * in_, bf16_.data() + begin * even_,
            blocks_.data() + begin * (in_ / kBlockInputs),
            transformed_.data() + begin * (in_ / kTransformedInputs)};
  }

  double seen(WeightFormat format, std::size_t row, std::size_t k) const {
    if (format == WeightFormat::Fp32) return fp32_[row * in_ + k];
    if (format == WeightFormat::Bf16) return to_float(bf16_[row * even_ + k]);
    if (format == WeightFormat::Int8) {
      const auto& block = transformed_[(row * in_ + k) / kTransformedInputs];
      return double{block.scale} * block.quants[k % kTransformedInputs];
    }
    const auto& block = blocks_[(row * in_ + k) / kBlockInputs];
    return double{block.scale} * block.quants[k % kBlockInputs];
  }

  std::size_t count() const { return count_; }

 private:
  void form(const DecoderKernels& kernels, std::size_t row) {
    const std::size_t blocks = in_ / kBlockInputs;
    kernels.narrow(in_, fp32_.data() + row * in_, bf16_.data() + row * even_);
    if (in_ % kBlockInputs != 0) return;
    kernels.quantize(in_, fp32_.data() + row * in_, blocks_.data() + row * blocks);
    if (in_ % kTransformedInputs != 0) return;
    kernels.quantize_transformed(in_, fp32_.data() + row * in_,
                                 transformed_.data() + row * (in_ / kTransformedInputs));
  }

  std::size_t in_, even_;
  std::vector<float> fp32_;
  std::vector<Bfloat16> bf16_;
  std::vector<ActivationBlock> blocks_;
  std::vector<TransformedBlock> transformed_;
  std::size_t count_;
};

std::vector<float> multiply(const DecoderKernels& kernels, const TestWeight& weight,
                            const TestRows& x) {
  const std::size_t out = weight.packed.out_size();
  std::vector<float> y(x.count() * out);
  kernels.product(weight.packed.format())(weight.packed, 0, weight.packed.panel_count(),
                                          x.rows(0, x.count()), {y.data(), out, false});
  return y;
}

TEST(PanelProductTest, IsTheSumOfProductsOnEveryInstructionSet) {
  for (const auto& kernels : decoder_kernels_available()) {
    for (const auto format : kFormats) {
      std::mt19937 random(7);
      const std::size_t in = inputs_of(format, 96), out = 37, count = 13;
      const TestWeight weight(format, out, in, random, kernels.interleaves_panels);
      const TestRows x(kernels, count, in, random);
      const auto y = multiply(kernels, weight, x);
      for (std::size_t r = 0; r < count; ++r) {
        for (std::size_t o = 0; o < out; ++o) {
          double sum = 0;
          for (std::size_t k = 0; k < in; ++k) {
            sum += x.seen(format, r, k) * weight.values[o * in + k];
          }
          ASSERT_NEAR(y[r * out + o], sum, 2e-4)
              << kernels.name << " " << weight_format_name(format) << " row " << r << " output "
              << o;
        }
      }
    }
  }
}

TEST(PanelProductTest, OfNoRowsNothingIsWritten) {
  for (const auto& kernels : decoder_kernels_available()) {
    for (const auto format : kFormats) {
      std::mt19937 random(7);
      const TestWeight weight(format, 37, inputs_of(format, 96), random,
                              kernels.interleaves_panels);
      std::vector<float> y(37, 5.0F);
      kernels.product(format)(weight.packed, 0, weight.packed.panel_count(), ProductRows{},
                              {y.data(), y.size(), false});
      EXPECT_EQ(y, std::vector<float>(37, 5.0F))
          << kernels.name << " " << weight_format_name(format);
    }
  }
}

// Both sides are transformed, so their product is that of what they were; a value that is 60 times
// as large as the others, which with one scale would leave them two bits, costs little.
TEST(PanelProductTest, Int8IsNearTheProductOfWhatWasTransformed) {
  const std::size_t in = 320, out = 48, count = 16;
  for (const float outlier : {1.0F, 60.0F}) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    std::vector<float> weights(out * in);
    for (auto& value : weights) value = normal(random);
    PanelWeight packed(WeightFormat::Int8, out, in);
    for (std::size_t panel = 0; panel < packed.panel_count(); ++panel) {
      const float* rows[kPanelOutputs] = {};
      for (std::size_t o = 0; o < kPanelOutputs; ++o) {
        rows[o] = weights.data() + (panel * kPanelOutputs + o) * in;
      }
      pack_panel(rows, panel, packed);
    }
    for (const auto& kernels : decoder_kernels_available()) {
      TestRows x(kernels, count, in, random);
      for (std::size_t r = 0; r < count; ++r) x.put(kernels, r, 64 + r, outlier);
      std::vector<float> y(count * out);
      kernels.multiply_int8(packed, 0, packed.panel_count(), x.rows(0, count),
                            {y.data(), out, false});
      double error = 0, whole = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        double sum = 0;
        for (std::size_t k = 0; k < in; ++k) {
          sum += x.seen(WeightFormat::Fp32, i / out, k) * weights[i % out * in + k];
        }
        error += (y[i] - sum) * (y[i] - sum);
        whole += sum * sum;
      }
      EXPECT_LT(std::sqrt(error / whole), 0.012) << kernels.name << " outlier " << outlier;
    }
  }
}

TEST(PanelProductTest, AnOddNumberOfInputsAndABiasCount) {
  const std::size_t out = 37;
  for (const auto& kernels : decoder_kernels_available()) {
    for (const auto format : kFormats) {
      for (const std::size_t count : {2U, 14U}) {
        std::mt19937 random(8);
        const std::size_t in = inputs_of(format, is_blocked(format) ? 32 : 7);
        TestWeight weight(format, out, in, random, kernels.interleaves_panels);
        float* bias = weight.packed.make_bias();
        for (std::size_t i = 0; i < out; ++i) bias[i] = static_cast<float>(i);
        const TestRows x(kernels, count, in, random);
        const auto y = multiply(kernels, weight, x);
        for (std::size_t i = 0; i < y.size(); ++i) {
          auto sum = static_cast<double>(i % out);
          for (std::size_t k = 0; k < in; ++k) {
            sum += x.seen(format, i / out, k) * weight.values[i % out * in + k];
          }
          ASSERT_NEAR(y[i], sum, 1e-4) << kernels.name << " " << weight_format_name(format);
        }
      }
    }
  }
}

TEST(PanelProductTest, AValueThatIsNoNumberMakesItsRowNoneAndNoOther) {
  for (const auto& kernels : decoder_kernels_available()) {
    for (const auto format : kFormats) {
      std::mt19937 random(10);
      const std::size_t in = inputs_of(format, 96), out = 37, count = 3;
      const TestWeight weight(format, out, in, random, kernels.interleaves_panels);
      TestRows x(kernels, count, in, random);
      const auto expected = multiply(kernels, weight, x);
      for (const std::size_t place : {0U, 40U, 95U}) {
        SCOPED_TRACE(std::string(kernels.name) + " " + std::string(weight_format_name(format)));
        auto broken = x;
        broken.put(kernels, 1, place, std::numeric_limits<float>::quiet_NaN());
        const auto y = multiply(kernels, weight, broken);
        for (std::size_t i = 0; i < y.size(); ++i) {
          if (i / out == 1) {
            ASSERT_TRUE(std::isnan(y[i])) << "output " << i % out;
          } else {
            ASSERT_EQ(y[i], expected[i]) << "row " << i / out;
          }
        }
      }
    }
  }
}

// Any division of rows and panels gives an element the same bits, and adding is one addition more.
TEST(PanelProductTest, AnElementIsTheSameBitsHoweverTheWorkIsDivided) {
  for (const auto& kernels : decoder_kernels_available()) {
    for (const auto format : kFormats) {
      std::mt19937 random(9);
      const std::size_t in = inputs_of(format, is_blocked(format) ? 64 : 81), out = 144, count = 75;
      const TestWeight weight(format, out, in, random, kernels.interleaves_panels);
      const TestRows x(kernels, count, in, random);
      const auto whole = multiply(kernels, weight, x);
      const auto product = kernels.product(format);
      std::vector<float> parts(whole.size(), 1.0F);
      std::uniform_int_distribution<std::size_t> size(1, 21);
      for (std::size_t row = 0; row < count;) {
        const auto rows = std::min(size(random), count - row);
        for (std::size_t panel = 0; panel < weight.packed.panel_count();) {
          const auto end = std::min(panel + size(random), weight.packed.panel_count());
          product(weight.packed, panel, end, x.rows(row, rows),
                  {parts.data() + row * out, out, true});
          panel = end;
        }
        row += rows;
      }
      for (std::size_t i = 0; i < whole.size(); ++i) {
        ASSERT_EQ(parts[i], 1.0F + whole[i]) << kernels.name << " " << weight_format_name(format);
      }
    }
  }
}

// Of any panels, beginning and ending among four interleaved ones, and behind the last four.
TEST(PanelProductTest, AnElementIsTheSameBitsWithPanelsInterleaved) {
  for (const auto& kernels : decoder_kernels_available()) {
    if (kernels.name.find("amx") != std::string_view::npos) continue;  // tiles take panels apart
    for (const auto format : {WeightFormat::Fp32, WeightFormat::Bf16}) {
      const std::size_t in = 81, out = 165;
      std::mt19937 random(9);
      TestWeight single(format, out, in, random);
      random.seed(9);
      TestWeight woven(format, out, in, random, true);
      ASSERT_EQ(single.values, woven.values);
      float* biases[] = {single.packed.make_bias(), woven.packed.make_bias()};
      for (std::size_t o = 0; o < out; ++o) biases[0][o] = biases[1][o] = static_cast<float>(o);
      for (const std::size_t count : {1U, 4U, 29U}) {
        const TestRows x(kernels, count, in, random);
        const auto whole = multiply(kernels, single, x);
        EXPECT_EQ(multiply(kernels, woven, x), whole) << weight_format_name(format);
        for (const std::size_t begin : {0U, 1U, 2U, 7U, 8U}) {
          for (std::size_t end = begin; end <= woven.packed.panel_count(); ++end) {
            std::vector<float> y(count * out, 1.0F);
            kernels.product(format)(woven.packed, begin, end, x.rows(0, count),
                                    {y.data(), out, true});
            for (std::size_t i = 0; i < y.size(); ++i) {
              const auto panel = i % out / kPanelOutputs;
              ASSERT_EQ(y[i], 1.0F + (panel >= begin && panel < end ? whole[i] : 0))
                  << kernels.name << " " << begin << " to " << end << " of " << count << " rows";
            }
          }
        }
      }
    }
  }
}

// A strip of rows takes one run or two of what comes next, none twice, and fetches it: also where
// that is the end of what may be read. No bit changes.
TEST(PanelProductTest, WhatIsFetchedMeanwhileChangesNoBit) {
  constexpr std::size_t kRun = FetchRuns::kLines * FetchRuns::kLine;
  const std::vector<std::byte> ahead(40 * kRun);
  std::vector<const std::byte*> begins;
  for (std::size_t i = 0; i < 20; ++i) begins.push_back(ahead.data() + i * kRun);
  for (const auto& kernels : decoder_kernels_available()) {
    for (const auto format :
         {WeightFormat::Bf16, WeightFormat::Q4_1, WeightFormat::Q8_0, WeightFormat::Int8}) {
      std::mt19937 random(9);
      const std::size_t in = 576, out = 144, count = 20;
      const TestWeight weight(format, out, in, random, kernels.interleaves_panels);
      const TestRows x(kernels, count, in, random);
      const auto whole = multiply(kernels, weight, x);
      std::vector<float> y(whole.size());
      FetchRuns runs{
          .next = begins.data(), .end = begins.data() + begins.size(), .offset = 20 * kRun};
      auto rows = x.rows(0, count);
      rows.runs = &runs;
      kernels.product(format)(weight.packed, 0, weight.packed.panel_count(), rows,
                              {y.data(), out, false});
      EXPECT_EQ(y, whole) << kernels.name << " " << weight_format_name(format);
      const auto taken = runs.next - begins.data();
      if (kernels.name == "avx512+bf16+vnni") {
        // Blocks: 4 strips of up to 6 rows for each of 4 pairs of panels, the ninth panel alone.
        // bf16: all 20, as 4 strips for each of 3 groups of panels take two each.
        EXPECT_EQ(taken, format == WeightFormat::Bf16 ? 20 : 16) << weight_format_name(format);
      }
    }
  }
}

// The sums of blocks are exact integers in each, and what is done with them is the same.
TEST(PanelProductTest, BlocksHaveTheSameBitsByTilesAndByVnni) {
  if (!has_amx_tiles()) GTEST_SKIP() << "this CPU has no AMX, or Linux does not let us use it";
  const auto available = decoder_kernels_available();
  const auto& tiles = available.back();
  const auto& vnni = available[available.size() - 2];
  for (const auto format :
       {WeightFormat::Q4_0, WeightFormat::Q4_1, WeightFormat::Q8_0, WeightFormat::Int8}) {
    for (const std::size_t count : {7U, 8U, 12U, 16U, 17U, 31U, 32U, 33U, 61U}) {
      std::mt19937 random(12);
      const std::size_t in = inputs_of(format, 160);
      const TestWeight weight(format, 53, in, random);
      const TestRows x(vnni, count, in, random);
      EXPECT_EQ(multiply(tiles, weight, x), multiply(vnni, weight, x))
          << weight_format_name(format) << " rows " << count;
    }
  }
}

/// What TDPBF16PS adds up, tile by tile of 32 inputs: the even inputs, the odd ones, and both.
float sum_of_tiles(const TestWeight& weight, const TestRows& x, std::size_t row, std::size_t output,
                   std::size_t in) {
  float sum = 0;
  for (std::size_t begin = 0; begin < in; begin += 32) {
    float halves[2] = {0, 0};
    for (std::size_t k = begin; k < std::min(in, begin + 32); ++k) {
      const auto value = static_cast<float>(x.seen(WeightFormat::Bf16, row, k));
      halves[k % 2] = std::fma(value, weight.values[output * in + k], halves[k % 2]);
    }
    sum += halves[0] + halves[1];
  }
  return sum;
}

// Two small products whose difference is denormal: tiles flush it to a zero that keeps its sign. It
// does so whether its panel stands beside a last one that is not full (1 row) or not (32 rows).
TEST(PanelProductTest, AZeroHasTheSameSignHoweverTheWorkIsDivided) {
  for (const auto& kernels : decoder_kernels_available()) {
    const std::size_t in = 64, out = 72, count = 32;
    std::vector<float> row(in);
    row[0] = 1;
    row[32] = -1;
    PanelWeight weight(WeightFormat::Bf16, out, in);
    for (std::size_t panel = 0; panel < weight.panel_count(); ++panel) {
      const float* rows[kPanelOutputs] = {};
      std::fill(rows, rows + std::min<std::size_t>(kPanelOutputs, out - panel * 16), row.data());
      pack_panel(rows, panel, weight);
    }
    std::vector<Bfloat16> x(count * in);
    for (std::size_t r = 0; r < count; ++r) {
      x[r * in] = to_bfloat16(0x1p-126F);
      x[r * in + 32] = to_bfloat16(0x1.02p-126F);
    }
    std::vector<float> together(count * out), alone(out);
    kernels.multiply_bf16(weight, 0, weight.panel_count(), {.count = count, .bf16 = x.data()},
                          {together.data(), out, false});
    kernels.multiply_bf16(weight, 0, weight.panel_count(), {.count = 1, .bf16 = x.data()},
                          {alone.data(), out, false});
    EXPECT_EQ(std::memcmp(together.data(), alone.data(), out * sizeof(float)), 0) << kernels.name;
  }
}

TEST(PanelProductTest, ASumOfTilesHasTheOrderOfTheInstruction) {
  if (!has_amx_tiles()) GTEST_SKIP() << "this CPU has no AMX, or Linux does not let us use it";
  const auto available = decoder_kernels_available();
  for (const std::size_t in : {32U, 96U, 75U}) {
    for (const std::size_t count : {1U, 16U, 40U}) {
      std::mt19937 random(13);
      const TestWeight weight(WeightFormat::Bf16, 80, in, random);
      const TestRows x(available.back(), count, in, random);
      const auto y = multiply(available.back(), weight, x);
      for (std::size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(y[i], sum_of_tiles(weight, x, i / 80, i % 80, in)) << "inputs " << in;
      }
    }
  }
}

}  // namespace
}  // namespace muster::engine
