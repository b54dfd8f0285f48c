// The decoder for GPUs, on a GPU or on the stand-in for one (GPU_TEST_DEVICE).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/decoder/decoder_fixture.h"
#include "engine/encoder.h"
#include "engine/encoder_fixture.h"
#include "engine/gpu_device.h"
#include "engine/gpu_fixture.h"

namespace muster::engine {
namespace {

constexpr const char* kModels[] = {"llama", "llama_biased", "llama3",        "mistral",
                                   "qwen2", "qwen3",        "phi3",          "gpt2",
                                   "opt",   "gpt_neox",     "gpt_neox_plain"};

class GpuDecoderTest : public OnGpu<testing::TestWithParam<const char*>> {
 protected:
  static DecoderFixture fixture_of(const std::string& name,
                                   DecoderPrecision precision = DecoderPrecision::Fp32) {
    DecoderFixture fixture(name);
    fixture.options.device = gpu_under_test();
    fixture.options.precision = precision;
    return fixture;
  }
};

using GpuDecoderManySequencesTest = GpuDecoderTest;

// Tokens of a vocabulary, one after the other.
std::vector<std::uint32_t> prefix(std::size_t count, std::size_t vocab) {
  std::vector<std::uint32_t> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<std::uint32_t>(i % vocab));
  return tokens;
}

TEST_P(GpuDecoderTest, LogitsOfEveryPositionAreThoseOfTransformers) {
  const auto fixture = fixture_of(GetParam());
  expect_logits_of_every_position(*fixture.load(), fixture);
}

TEST_P(GpuDecoderTest, SixtyFourGreedyTokensAreThoseOfTransformers) {
  expect_greedy_replies(fixture_of(GetParam()));
}

TEST_P(GpuDecoderTest, ASequenceHasTheSameBitsInEveryCompany) {
  for (const auto precision : {DecoderPrecision::Fp32, DecoderPrecision::Bf16}) {
    const auto fixture = fixture_of(GetParam(), precision);
    const auto decoder = fixture.load();
    const std::size_t vocab = decoder->vocab_size();
    const auto prompt = fixture.prompt(0);
    TestSequence alone(*decoder, 0);
    alone.push(prompt.first(8));
    const auto expected = alone.push(prompt.subspan(8, 1));
    // The same two steps, beside a longer chunk and beside a token of another's.
    TestSequence first(*decoder, 0);
    TestSequence second(*decoder, 1);
    TestSequence third(*decoder, 2);
    std::vector<float> logits(2 * vocab);
    const StepSequence prefill[] = {second.next(fixture.prompt(1)), first.next(prompt.first(8))};
    ASSERT_TRUE(decoder->step(prefill, logits));
    logits.resize(3 * vocab);
    const StepSequence next[] = {second.next(prompt.first(1)), first.next(prompt.subspan(8, 1)),
                                 third.next(fixture.prompt(2).first(5))};
    ASSERT_TRUE(decoder->step(next, logits));
    EXPECT_EQ(std::memcmp(expected.data(), logits.data() + vocab, vocab * sizeof(float)), 0)
        << decoder_precision_name(precision);
  }
}

// Rounded weights and rows turn logits a little; a wrong place, scale or order turns them round.
TEST_P(GpuDecoderTest, SixteenBitsStayNearTheExpectedLogits) {
  const auto fixture = fixture_of(GetParam(), DecoderPrecision::Bf16);
  const auto decoder = fixture.load();
  const std::size_t vocab = decoder->vocab_size();
  for (std::size_t i = 0; i < DecoderFixture::kPrompts; ++i) {
    const auto prompt = fixture.prompt(i);
    const auto logits = TestSequence(*decoder, static_cast<std::uint32_t>(i)).push(prompt);
    const auto expected = fixture.logits(i).subspan((prompt.size() - 1) * vocab, vocab);
    EXPECT_GT(cosine(logits, expected), 0.999) << "prompt " << i;
  }
}

// The second half behind blocks that another sequence has filled.
TEST_P(GpuDecoderTest, BehindSharedBlocksLogitsAreTheSame) {
  const auto fixture = fixture_of(GetParam());
  const auto prompt = fixture.prompt(0);
  constexpr std::size_t kShared = 1;  // blocks
  ASSERT_GT(prompt.size(), kShared * kKvBlockTokens);
  const auto decoder = fixture.load();
  TestSequence first(*decoder, 2);
  first.push(prompt.first(kShared * kKvBlockTokens));
  const auto rest = prompt.subspan(kShared * kKvBlockTokens);
  const auto shared = TestSequence(*decoder, 0, first, kShared).push(rest);
  EXPECT_EQ(shared, first.push(rest));
}

// 113 keys each: 144 sequences are 16,272, one more is beyond what is gathered at once.
TEST_P(GpuDecoderManySequencesTest, TakeNoMoreAtOnceThanFewAndHaveTheSameBits) {
  for (const auto precision : {DecoderPrecision::Fp32, DecoderPrecision::Bf16}) {
    constexpr std::uint32_t kSharedBlocks = 7;
    constexpr std::uint32_t kShared = kSharedBlocks * kKvBlockTokens;
    constexpr std::size_t kFew = 144;
    constexpr std::size_t kMany = 290;
    auto fixture = fixture_of(GetParam(), precision);
    fixture.options.logits_max = kMany;
    fixture.options.block_count = kSharedBlocks + kMany;
    const auto decoder = fixture.load();
    const std::size_t vocab = decoder->vocab_size();
    const auto shared = prefix(kShared, vocab);
    std::vector<std::vector<std::uint32_t>> blocks(kMany, {0, 1, 2, 3, 4, 5, 6});
    const StepSequence first{
        .tokens = shared, .position = 0, .blocks = blocks.front(), .logit_count = 0};
    ASSERT_TRUE(decoder->step(std::span(&first, 1), {}));
    std::vector<StepSequence> sequences;
    for (std::uint32_t i = 0; i < kMany; ++i) {
      blocks[i].push_back(kSharedBlocks + i);
      sequences.push_back({.tokens = std::span(shared).first(1),
                           .position = kShared,
                           .blocks = blocks[i],
                           .logit_count = 1});
    }
    std::vector<float> logits(kMany * vocab);
    const auto peak_of = [&](std::size_t count) {
      const auto device = torch_device(gpu_under_test());
      wait_for_stream(device);
      restart_peak(device);
      const auto held = device_memory_use(device).live_bytes;
      EXPECT_TRUE(
          decoder->step(std::span(sequences).first(count), std::span(logits).first(count * vocab)));
      return device_memory_use(device).peak_bytes - held;
    };
    peak_of(1);  // what libraries take at their first call is kept
    const std::vector<float> alone(logits.begin(), logits.begin() + static_cast<long>(vocab));
    const auto few = peak_of(kFew);
    // All at once would be 16,498 keys more, with their values of 64 bytes in bf16 and 192 in fp32.
    // Twice as many rows take about a quarter of that.
    EXPECT_LT(peak_of(kMany), few + std::size_t{16'498} * 64 / 2)
        << decoder_precision_name(precision);
    for (std::size_t i = 0; i < kMany; ++i) {
      ASSERT_EQ(std::memcmp(alone.data(), logits.data() + i * vocab, vocab * sizeof(float)), 0)
          << decoder_precision_name(precision) << ", sequence " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuDecoderManySequencesTest, testing::Values("llama"),
                         [](const auto& model) { return std::string(model.param); });

INSTANTIATE_TEST_SUITE_P(All, GpuDecoderTest, testing::ValuesIn(kModels),
                         [](const auto& model) { return std::string(model.param); });

using GpuDecoderRefusalTest = GpuDecoderTest;

TEST_P(GpuDecoderRefusalTest, WhatIsComputedOnCpusOnlyIsNamed) {
  const auto words_of = [](const DecoderFixture& fixture) {
    const auto decoder = Decoder::load(fixture.options);
    return decoder ? std::string() : decoder.error().message;
  };
  const auto own = fixture_of("llama", DecoderPrecision::Own);
  EXPECT_EQ(words_of(own),
            own.options.source.string() +
                ": a file's own bits are multiplied on CPUs only: on a GPU use bf16 or fp32");
  const auto int8 = fixture_of("llama", DecoderPrecision::Int8);
  EXPECT_EQ(words_of(int8),
            int8.options.source.string() +
                ": blocks of int8 are multiplied on CPUs only: on a GPU use bf16 or fp32");
  auto narrow = fixture_of("llama");
  narrow.options.kv_cache_dtype = KvCacheDtype::Int8;
  EXPECT_EQ(words_of(narrow), narrow.options.source.string() +
                                  ": keys and values are kept in int8 on CPUs only: on a GPU use "
                                  "kv_cache_dtype auto");
  const auto gemma = fixture_of(GetParam());
  EXPECT_EQ(words_of(gemma), gemma.options.source.string() +
                                 ": the capped attention of gemma2 is computed on CPUs only");
  const auto mixtral = fixture_of("mixtral");
  EXPECT_EQ(words_of(mixtral),
            mixtral.options.source.string() + ": the experts of mixtral are computed on CPUs only");
}

INSTANTIATE_TEST_SUITE_P(All, GpuDecoderRefusalTest, testing::Values("gemma2"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace muster::engine
