#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "engine/decoder/decoder_fixture.h"
#include "modelfile/safetensors.h"

namespace muster::engine {
namespace {

/// A model in whose table the row of one token is erased memory: all ones, which is no number.
class LostTokenTest : public testing::TestWithParam<const char*> {
 protected:
  LostTokenTest()
      : prompt_(fixture_.prompt(0).begin(), fixture_.prompt(0).begin() + kLength),
        folder_(std::filesystem::path(testing::TempDir()) /
                ("lost_token." + std::to_string(::getpid()))) {
    while (std::find(prompt_.begin(), prompt_.end(), token_) != prompt_.end()) ++token_;
    auto file = read_file(fixture_.options.source / "model.safetensors");
    MUSTER_CHECK(file.has_value());
    const auto header = parse_safetensors_header(std::as_bytes(std::span(*file)), file->size());
    MUSTER_CHECK(header.has_value());
    const std::size_t row = fixture_.options.spec.hidden_size * sizeof(float);
    file->replace(header->tensors.at("model.embed_tokens.weight").begin + token_ * row, row, row,
                  '\xff');
    std::filesystem::create_directories(folder_);
    MUSTER_CHECK(write_file_atomically(folder_ / "model.safetensors", *file).has_value());
  }
  ~LostTokenTest() override { std::filesystem::remove_all(folder_); }

  /// The logits of all tokens of one step.
  static std::vector<float> logits_of(const DecoderOptions& options,
                                      std::span<const std::uint32_t> tokens) {
    const auto decoder = Decoder::load(options);
    MUSTER_CHECK(decoder.has_value());
    const std::vector<std::uint32_t> blocks{0, 1};
    const StepSequence step{.tokens = tokens,
                            .position = 0,
                            .blocks = blocks,
                            .logit_count = static_cast<std::uint32_t>(tokens.size())};
    std::vector<float> logits(tokens.size() * (*decoder)->vocab_size());
    MUSTER_CHECK((*decoder)->step(std::span(&step, 1), logits).has_value());
    return logits;
  }

  // The token behind these shares a strip of attention with the last of them, and no block of the
  // cache with the first 16.
  static constexpr std::ptrdiff_t kLength = 17;

  DecoderFixture fixture_{GetParam()};
  std::vector<std::uint32_t> prompt_;
  const std::filesystem::path folder_;
  std::uint32_t token_ = 0;  // the first one that is not in the prompt
};

// Those before it are what they are without it, to the last bit: their keys and values may be kept
// for other prompts. Its own logits are none, in each precision, so that it is not continued.
TEST_P(LostTokenTest, ATokenThatIsNoNumberIsLostAloneAndInEveryPrecision) {
  for (const auto precision : {DecoderPrecision::Fp32, DecoderPrecision::Bf16,
                               DecoderPrecision::Own, DecoderPrecision::Int8}) {
    SCOPED_TRACE(std::string(decoder_precision_name(precision)));
    auto options = fixture_.options;
    options.precision = precision;
    const auto expected = logits_of(options, prompt_);
    auto tokens = prompt_;
    tokens.push_back(token_);
    options.source = folder_;
    auto logits = logits_of(options, tokens);
    const auto own = std::span(logits).subspan(expected.size());
    ASSERT_EQ(own.size(), options.spec.vocab_size);
    for (const float logit : own) ASSERT_TRUE(std::isnan(logit)) << logit;
    logits.resize(expected.size());
    EXPECT_EQ(logits, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LostTokenTest, testing::Values("llama3", "mixtral"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace muster::engine
