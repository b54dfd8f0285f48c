#include "engine/models/padded_encoder.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/cuda.h"
#include "engine/encoder_fixture.h"

namespace muster::engine {
namespace {

// The model for GPUs is computed here by torch's CPU operators in fp32, so that its weights,
// padding, passes, masks and shapes are tested on every machine. Not tested here, as it needs the
// device: CUDA's kernels (attention takes others there), fp16 and bf16, the copies to and from the
// device, and that a text's bits do not depend on its batch.
std::vector<float> hidden_on_cpu(const EncoderFixture& fixture, const TextBatch& batch) {
  const c10::InferenceMode inference;
  auto weights =
      collect_weights(fixture.options.encoder, *ModelWeights::open(fixture.options.model_folder),
                      fixture.options.rerank);
  EXPECT_TRUE(weights) << weights.error().message;
  const PaddedEncoder encoder(fixture.options.encoder, *weights, Precision::Fp32,
                              at::Device(at::kCPU));
  const auto state = encoder.last_hidden_state(batch);
  const auto* values = state.const_data_ptr<float>();
  return {values, values + batch.ids.size() * fixture.options.encoder.hidden_size};
}

class PaddedEncoderTest : public testing::TestWithParam<std::string> {
 protected:
  PaddedEncoderTest() { enter_lane(); }
};

TEST_P(PaddedEncoderTest, TheLastHiddenStateIsThatOfTransformers) {
  const EncoderFixture fixture(GetParam());
  EXPECT_LE(max_difference(hidden_on_cpu(fixture, fixture.batch()), fixture.expected("hidden")),
            1e-5F);
}

INSTANTIATE_TEST_SUITE_P(EveryFamily, PaddedEncoderTest,
                         testing::Values("bert", "bert_odd", "roberta", "xlm_roberta", "distilbert",
                                         "mpnet"),
                         [](const auto& family) { return family.param; });

TEST(PaddedEncoder, TheSecondTextOfAPairHasItsTokenType) {
  enter_lane();
  const EncoderFixture fixture("bert_cross");
  const auto batch = fixture.batch();
  const auto encoder = Encoder::load(fixture.options);
  ASSERT_TRUE(encoder) << encoder.error().message;
  std::vector<float> expected(batch.ids.size() * fixture.options.encoder.hidden_size);
  ASSERT_TRUE((*encoder)->last_hidden_state(batch, expected));
  EXPECT_LE(max_difference(hidden_on_cpu(fixture, batch), expected), 1e-5F);
}

TEST(PaddedEncoder, MoreTextsThanAPassHoldsTakeTheNextOne) {
  enter_lane();
  const EncoderFixture fixture("bert");
  // 4096 rows are 256 texts of padded length 16; 300 need two passes.
  const std::vector<std::uint32_t> lengths(300, 3);
  std::vector<std::uint32_t> ids(900);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint32_t>(i % 3 + 5);
  const auto hidden = hidden_on_cpu(fixture, {ids, lengths});
  const std::vector<float> first(hidden.begin(), hidden.begin() + 3 * 64);
  const std::vector<float> last(hidden.end() - 3 * 64, hidden.end());
  EXPECT_EQ(max_difference(first, last), 0);
}

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto cuda = open_cuda(); !cuda) GTEST_SKIP() << cuda.error().message;
  }
};

TEST_F(GpuTest, TheLastHiddenStateIsThatOfTransformers) {
  for (const auto* name : {"bert", "bert_odd", "roberta", "xlm_roberta", "distilbert", "mpnet"}) {
    SCOPED_TRACE(name);
    const EncoderFixture fixture(name, DeviceKind::Cuda);
    const auto encoder = Encoder::load(fixture.options);
    ASSERT_TRUE(encoder) << encoder.error().message;
    std::vector<float> hidden(fixture.batch().ids.size() * (*encoder)->dim());
    ASSERT_TRUE((*encoder)->last_hidden_state(fixture.batch(), hidden));
    // A GPU adds in another order than the CPU that wrote the fixture.
    EXPECT_LE(max_difference(hidden, fixture.expected("hidden")), 2e-5F);
  }
}

TEST(Cuda, WithoutADeviceLoadingSaysWhy) {
  if (open_cuda()) GTEST_SKIP() << "this machine has a CUDA device";
  const EncoderFixture fixture("bert", DeviceKind::Cuda);
  const auto encoder = Encoder::load(fixture.options);
  ASSERT_FALSE(encoder);
  EXPECT_EQ(encoder.error().kind, ErrorKind::Unsupported);
  EXPECT_FALSE(encoder.error().message.empty());
}

}  // namespace
}  // namespace muster::engine
