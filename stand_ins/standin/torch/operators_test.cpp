// Every operator of the stand-in against torch's own on the CPU: the kernels are the same, so the
// numbers must be.

#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/segment_reduce.h>
#include <ATen/ops/zeros.h>

#include <functional>

#include "standin/torch/standin_fixture.h"

namespace muster::standin {
namespace {

class OperatorTest : public StandinTest, public testing::WithParamInterface<c10::ScalarType> {
 protected:
  using Compute = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

  // The same work on the CPU and on the device.
  static void expect_same(const std::vector<at::Tensor>& given, const Compute& compute) {
    std::vector<at::Tensor> there;
    for (const auto& tensor : given) there.push_back(tensor.to(device()));
    const auto expected = compute(given);
    const auto result = compute(there);
    EXPECT_EQ(result.device(), device());
    EXPECT_EQ(result.scalar_type(), expected.scalar_type());
    EXPECT_TRUE(result.to(c10::kCPU).equal(expected));
  }

  static at::Tensor values(c10::IntArrayRef size) { return StandinTest::values(size, GetParam()); }
};

TEST_P(OperatorTest, Products) {
  const auto x = values({7, 12});
  const auto weight = values({5, 12});
  expect_same({x, weight, values({5})},
              [](const auto& in) { return at::linear(in[0], in[1], in[2]); });
  expect_same({x, weight.t().contiguous()}, [](const auto& in) { return at::mm(in[0], in[1]); });
}

TEST_P(OperatorTest, SumsAndActivations) {
  const auto x = values({3, 64});
  expect_same({x, values({3, 64}).mul(2)}, [](const auto& in) { return in[0].add(in[1]); });
  expect_same({x}, [](const auto& in) { return in[0].clone().add_(in[0]); });
  expect_same({x}, [](const auto& in) { return in[0].mul(0.5); });
  expect_same({x}, [](const auto& in) { return in[0].clone().relu_(); });
  expect_same({x.narrow(0, 0, 1)}, [](const auto& in) { return at::gelu(in[0]); });
  expect_same({x.narrow(0, 0, 1)}, [](const auto& in) { return at::gelu(in[0], "tanh"); });
}

// On the CPU the last elements of a tensor go another way than the others.
TEST_P(OperatorTest, AnActivationOfARowDoesNotDependOnTheOtherRows) {
  for (const std::int64_t width : {50, 64}) {
    const auto x = values({32, width}).to(device());
    for (const auto* how : {"none", "tanh"}) {
      const auto rows = at::gelu(x, how);
      for (const std::int64_t i : {0, 30, 31}) {
        EXPECT_TRUE(at::equal(at::gelu(x.narrow(0, i, 1), how), rows.narrow(0, i, 1)))
            << width << " " << how << ", row " << i;
      }
    }
  }
}

TEST_P(OperatorTest, ShapesAndSelections) {
  const auto x = values({4, 3, 2});
  expect_same({x}, [](const auto& in) { return in[0].permute({2, 0, 1}).contiguous(); });
  expect_same({x}, [](const auto& in) { return in[0].narrow(0, 1, 2).reshape({6, 2}); });
  expect_same({x}, [](const auto& in) { return in[0].repeat({2, 1, 1}); });
  expect_same({x}, [](const auto& in) { return at::constant_pad_nd(in[0], {0, 3}); });
  expect_same({x, x.add(x)}, [](const auto& in) { return at::cat({in[0], in[1]}); });
  expect_same({x}, [](const auto& in) { return in[0].select(1, 2).clone(); });
  expect_same({x}, [](const auto& in) { return in[0].unsqueeze(0).expand({2, 4, 3, 2}).clone(); });
  expect_same({x}, [](const auto& in) { return in[0].flatten(); });
}

TEST_P(OperatorTest, RowsByNumber) {
  const auto table = values({6, 4});
  const auto ids = at::arange(5, -1, -2, at::TensorOptions().dtype(c10::kInt));  // 5, 3, 1
  expect_same({table, ids}, [](const auto& in) { return at::embedding(in[0], in[1]); });
  expect_same({table, ids.narrow(0, 1, 2)},
              [](const auto& in) { return in[0].index_select(-1, in[1]); });
}

TEST_P(OperatorTest, Normalisation) {
  expect_same({values({5, 24}), values({24}), values({24})},
              [](const auto& in) { return at::layer_norm(in[0], {24}, in[1], in[2], 1e-12); });
}

TEST_P(OperatorTest, AttentionOfTextsIsThatOfEachAlone) {
  const auto x = values({9, 3, 2, 8});
  const auto numbers = at::TensorOptions().dtype(c10::kInt);
  // Lengths 4, 0 and 5.
  const auto offsets = at::cat({at::arange(0, 5, 4, numbers), at::arange(4, 10, 5, numbers)});
  const auto part = [](const at::Tensor& all, std::int64_t i) {
    return all.select(1, i).unsqueeze(0);
  };
  for (const bool has_bias : {false, true}) {
    const auto bias = values({1, 2, 9, 9});
    const auto there = x.to(device());
    std::optional<at::Tensor> bias_there;
    if (has_bias) bias_there = bias.to(device());
    const auto ends = offsets.to(device());
    const auto result = std::get<0>(
        at::_efficient_attention_forward(part(there, 0), part(there, 1), part(there, 2), bias_there,
                                         ends, ends, 5, 5, 0.0, 0, false, 0.25));
    for (const auto& [first, length] : {std::pair{0, 4}, std::pair{4, 5}}) {
      const auto own = [&, first = first, length = length](std::int64_t i) {
        return part(x, i).narrow(1, first, length).transpose(1, 2);
      };
      std::optional<at::Tensor> own_bias;
      if (has_bias) own_bias = bias.narrow(2, 0, length).narrow(3, 0, length);
      const auto expected =
          at::scaled_dot_product_attention(own(0), own(1), own(2), own_bias, 0.0, false, 0.25);
      EXPECT_TRUE(result.narrow(1, first, length)
                      .to(c10::kCPU)
                      .equal(expected.transpose(1, 2).contiguous()))
          << "bias " << has_bias << ", text at " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, OperatorTest,
                         testing::Values(c10::kFloat, c10::kHalf, c10::kBFloat16),
                         [](const auto& type) { return std::string(c10::toString(type.param)); });

TEST_F(StandinTest, SegmentsAreReducedByTheirOffsets) {
  const auto rows = values({6, 4});
  const auto offsets = at::arange(0, 7, 3, at::TensorOptions().dtype(c10::kInt));  // 0, 3, 6
  for (const auto* how : {"mean", "max"}) {
    const auto reduce = [&](const at::Tensor& all, const at::Tensor& ends) {
      return at::segment_reduce(all, how, {}, {}, ends, /*axis=*/0, /*unsafe=*/true);
    };
    const auto result = reduce(rows.to(device()), offsets.to(device()));
    EXPECT_TRUE(result.to(c10::kCPU).equal(reduce(rows, offsets))) << how;
  }
}

TEST_F(StandinTest, ARowOfLengthOneComesFromRmsNormalisation) {
  const auto rows = values({3, 16});
  const auto result = std::get<0>(at::_fused_rms_norm(rows.to(device()), {16}, {}, 1e-24));
  const auto expected = std::get<0>(at::_fused_rms_norm(rows, {16}, {}, 1e-24));
  EXPECT_LE(result.to(c10::kCPU).sub(expected).abs().max().item<float>(), 1e-6F);
}

// A number beside a tensor of integers makes it float32, not double: some products differ.
TEST_F(StandinTest, ANumberDoesNotDecideTheTypeOfTheResult) {
  const auto numbers = at::arange(1000, at::TensorOptions().dtype(c10::kInt));
  const auto result = numbers.to(device()).mul(0.1);
  EXPECT_EQ(result.scalar_type(), c10::kFloat);
  EXPECT_TRUE(result.to(c10::kCPU).equal(numbers.mul(0.1)));
}

TEST_F(StandinTest, WhatAKernelIsNotMadeForIsRefusedByName) {
  const auto rows = values({2, 8}).to(device());
  const auto deep = values({2, 2, 8}).to(device());
  const auto ends = at::arange(0, 5, 2, at::TensorOptions().dtype(c10::kInt).device(device()));
  const auto refused = [&](const char* name, const std::function<void()>& call) {
    const auto words = words_of(call);
    EXPECT_EQ(words.find("the stand-in device has a kernel of " + std::string(name)), 0U) << words;
  };
  refused("aten::gelu.out for", [&] { at::gelu(deep); });
  refused("aten::native_layer_norm for", [&] { at::layer_norm(rows, {2, 8}); });
  refused("aten::_fused_rms_norm for", [&] { at::_fused_rms_norm(deep, {8}, {}, 1e-24); });
  refused("aten::segment_reduce for",
          [&] { at::segment_reduce(rows, "mean", {}, {}, ends, 0, /*unsafe=*/true, 0.0); });
  refused("aten::_copy_from within", [&] { rows.to(device(1)); });
  refused("aten::resize_ for", [&] { rows.clone().resize_({100, 8}); });
  const auto qkv = values({1, 4, 2, 8}).to(device());
  refused("aten::_efficient_attention_forward for", [&] {
    at::_efficient_attention_forward(qkv, qkv, qkv, {}, ends, ends.clone(), 2, 2, 0.0, 0, false);
  });
}

// In a process of its own: the error stays with the process.
TEST_F(StandinTest, ATextThatIsLongerThanTheLongestIsFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto qkv = values({1, 4, 2, 8}).to(device());
        const auto ends =
            at::arange(0, 5, 4, at::TensorOptions().dtype(c10::kInt).device(device()));
        at::_efficient_attention_forward(qkv, qkv, qkv, {}, ends, ends, 3, 3, 0.0, 0, false);
        const auto words = words_of([] { wait(); });
        const bool is_found = words.find("a text has 4 tokens") != std::string::npos;
        std::_Exit(is_found ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(StandinTest, NumbersAreMadeAndCompared) {
  const auto options = at::TensorOptions().dtype(c10::kLong).device(device());
  const auto along = at::arange(4, options);
  EXPECT_EQ(along.select(0, 3).item<std::int64_t>(), 3);
  EXPECT_TRUE(along.sub(1).clamp(0, 1).to(c10::kCPU).equal(
      at::arange(4, at::TensorOptions().dtype(c10::kLong)).sub(1).clamp(0, 1)));
  EXPECT_TRUE(along.clamp_max(2).to(c10::kCPU).equal(
      at::arange(4, at::TensorOptions().dtype(c10::kLong)).clamp_max(2)));
  EXPECT_TRUE(at::equal(along, along.clone()));
  EXPECT_FALSE(at::equal(along, along.add(1)));
  EXPECT_TRUE(at::equal(at::zeros({4}, options), along.sub(along)));
}

}  // namespace
}  // namespace muster::standin
