#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "engine/decoder/decoder_fixture.h"
#include "engine/decoder/gguf_model_fixture.h"
#include "modelfile/decoder_config.h"

namespace muster::engine {
namespace {

/// The model of a test folder beside it as a GGUF file.
class GgufModelTest : public testing::TestWithParam<const char*> {
 protected:
  GgufModelTest()
      : folder_(GetParam()),
        path_(std::filesystem::path(testing::TempDir()) /
              (std::string(GetParam()) + "." + std::to_string(::getpid()) + ".gguf")) {
    const auto bytes = gguf_of_folder(folder_.options.source, folder_.options.spec);
    EXPECT_TRUE(write_file_atomically(path_, bytes));
  }
  ~GgufModelTest() override { std::filesystem::remove(path_); }

  /// The folder's options with the file in its place.
  DecoderOptions file_options() const {
    auto options = folder_.options;
    options.source = path_;
    const auto spec = read_decoder_spec(path_);
    EXPECT_TRUE(spec) << spec.error().message;
    if (spec) options.spec = *spec;
    return options;
  }

  DecoderFixture folder_;
  const std::filesystem::path path_;
};

/// The folder's model without what no key of a GGUF file states.
DecoderSpec as_a_file_states_it(DecoderSpec spec) {
  const bool loses_windows =
      spec.family == DecoderFamily::Qwen2 || spec.family == DecoderFamily::Mistral;
  if (loses_windows) spec.windows.assign(spec.layer_count, 0);
  spec.has_layer_scale = false;
  // llama.cpp knows the scale of Gemma 2 by the model's size.
  if (spec.family == DecoderFamily::Gemma2) {
    spec.attention_scale = 1 / std::sqrt(static_cast<double>(spec.head_size));
  }
  return spec;
}

class GgufBitsTest : public GgufModelTest {};

// Names, orders and offsets of the file are undone when it is read, and then all is the same; also
// in the bits of both, which are float32, though GPT-2's matrices stand the other way round.
TEST_P(GgufBitsTest, LogitsAreThoseOfTheFolder) {
  folder_.options.spec = as_a_file_states_it(folder_.options.spec);
  for (const auto precision : {DecoderPrecision::Fp32, DecoderPrecision::Bf16,
                               DecoderPrecision::Own, DecoderPrecision::Int8}) {
    folder_.options.precision = precision;
    const auto by_folder = folder_.load();
    auto by_file = Decoder::load(file_options());
    ASSERT_TRUE(by_file) << by_file.error().message;
    for (std::size_t i = 0; i < DecoderFixture::kPrompts; ++i) {
      const auto prompt = folder_.prompt(i);
      const auto first = static_cast<std::uint32_t>(i);
      EXPECT_EQ(TestSequence(**by_file, first).push(prompt),
                TestSequence(*by_folder, first).push(prompt))
          << "prompt " << i << " in " << decoder_precision_name(precision);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufBitsTest,
                         testing::Values("llama", "llama_biased", "mistral", "qwen2", "qwen3",
                                         "phi3", "gemma2", "mixtral", "gpt2", "gpt_neox",
                                         "gpt_neox_plain"),
                         [](const auto& model) { return std::string(model.param); });

class GgufSingleExpertsTest : public GgufModelTest {};

TEST_P(GgufSingleExpertsTest, LogitsAreThoseOfTheFolder) {
  const auto bytes = gguf_of_folder(folder_.options.source, folder_.options.spec, FileNumbers::Fp32,
                                    GgufExperts::Single);
  ASSERT_TRUE(write_file_atomically(path_, bytes));
  auto by_file = Decoder::load(file_options());
  ASSERT_TRUE(by_file) << by_file.error().message;
  EXPECT_EQ(TestSequence(**by_file, 0).push(folder_.prompt(0)),
            TestSequence(*folder_.load(), 0).push(folder_.prompt(0)));
}

INSTANTIATE_TEST_SUITE_P(All, GgufSingleExpertsTest, testing::Values("mixtral"),
                         [](const auto& model) { return std::string(model.param); });

/// Its rows are whole blocks of 32.
class GgufBlocksTest : public GgufModelTest {
 protected:
  /// The logits behind each prompt, of the model in a file of such numbers.
  std::vector<float> logits_of(FileNumbers numbers, DecoderPrecision precision) const {
    const auto bytes = gguf_of_folder(folder_.options.source, folder_.options.spec, numbers);
    EXPECT_TRUE(write_file_atomically(path_, bytes));
    auto options = file_options();
    options.precision = precision;
    auto decoder = Decoder::load(options);
    EXPECT_TRUE(decoder) << decoder.error().message;
    std::vector<float> logits;
    for (std::size_t i = 0; decoder && i < DecoderFixture::kPrompts; ++i) {
      TestSequence sequence(**decoder, static_cast<std::uint32_t>(i));
      const auto behind = sequence.push(folder_.prompt(i));
      logits.insert(logits.end(), behind.begin(), behind.end());
    }
    return logits;
  }
};

// int8 is made of what a file's blocks stand for, whether they stand in blocks or as float32.
TEST_P(GgufBlocksTest, InEightBitsTheFilesTypeChangesNothing) {
  const auto of_blocks = logits_of(FileNumbers::Q8_0, DecoderPrecision::Int8);
  ASSERT_FALSE(of_blocks.empty());
  EXPECT_EQ(logits_of(FileNumbers::Fp32OfBlocks, DecoderPrecision::Int8), of_blocks);
  EXPECT_NE(logits_of(FileNumbers::Q8_0, DecoderPrecision::Own), of_blocks) << "its own blocks";
}

INSTANTIATE_TEST_SUITE_P(All, GgufBlocksTest, testing::Values("gpt2"),
                         [](const auto& model) { return std::string(model.param); });

class GgufDivisorsTest : public GgufModelTest {};

// The file has the scaled frequencies as divisors, which are rounded once more.
TEST_P(GgufDivisorsTest, LogitsAreThoseOfTransformers) {
  auto decoder = Decoder::load(file_options());
  ASSERT_TRUE(decoder) << decoder.error().message;
  EXPECT_EQ((*decoder)->spec().rope.scaling, RopeScaling::LongRope);
  expect_logits_of_every_position(**decoder, folder_);
}

INSTANTIATE_TEST_SUITE_P(All, GgufDivisorsTest, testing::Values("llama3"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace muster::engine
