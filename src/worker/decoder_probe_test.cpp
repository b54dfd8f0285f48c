#include "worker/decoder_probe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "engine/encoder.h"
#include "engine/sampling/divergence.h"
#include "modelfile/decoder_config.h"
#include "worker/decoder_loading.h"

namespace muster {
namespace {

std::string fixture(const std::string& name) {
  return std::string(MUSTER_SOURCE_DIR) + "/src/engine/testdata/decoders/" + name;
}

// Two texts, the second one longer than what is computed at once.
ProbeDecoder probe_of(std::vector<DecoderPrecision> precisions) {
  ProbeDecoder probe{.source = fixture("llama"),
                     .precisions = std::move(precisions),
                     .measures_divergence = true,
                     .lengths = {5, 40},
                     .ids = std::vector<std::uint32_t>(45)};
  for (std::size_t i = 0; i < probe.ids.size(); ++i) {
    probe.ids[i] = static_cast<std::uint32_t>(3 + i * 7 % 50);
  }
  return probe;
}

/// The fixture's model with a context of 40 tokens, in a folder of its own.
class ShortContext {
 public:
  ShortContext()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("short_context." + std::to_string(::getpid()))) {
    const std::filesystem::path model = fixture("llama");
    std::filesystem::create_directories(folder_);
    std::filesystem::copy_file(model / "model.safetensors", folder_ / "model.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
    auto config = *read_file(model / "config.json");
    config.replace(config.find("128"), 3, "40");  // max_position_embeddings
    EXPECT_TRUE(write_file_atomically(folder_ / "config.json", config));
  }
  ~ShortContext() { std::filesystem::remove_all(folder_); }
  ShortContext(const ShortContext&) = delete;
  ShortContext& operator=(const ShortContext&) = delete;

  std::string source() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

// All positions of a text in one step of a decoder with room for it.
std::vector<float> logits_of(DecoderPrecision precision, std::span<const std::uint32_t> text) {
  engine::enter_lane();
  engine::DecoderOptions options;
  options.source = fixture("llama");
  options.spec = *read_decoder_spec(options.source);
  options.precision = precision;
  options.block_count = 4;
  const auto decoder = *engine::Decoder::load(options);
  std::vector<float> logits(text.size() * decoder->vocab_size());
  const std::vector<std::uint32_t> blocks{0, 1, 2, 3};
  const engine::StepSequence all{.tokens = text,
                                 .position = 0,
                                 .blocks = blocks,
                                 .logit_count = static_cast<std::uint32_t>(text.size())};
  EXPECT_TRUE(decoder->step({&all, 1}, logits));
  return logits;
}

TEST(DecoderProbe, MeasuresEachPrecisionAgainstTheFirst) {
  const auto probe = probe_of({DecoderPrecision::Fp32, DecoderPrecision::Bf16,
                               DecoderPrecision::Own, DecoderPrecision::Int8});
  const auto verdict = measure_decoder(probe, DeviceKind::Cpu);
  ASSERT_TRUE(verdict) << verdict.error().message;
  ASSERT_EQ(verdict->measures.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& measure = verdict->measures[i];
    SCOPED_TRACE(decoder_precision_name(measure.precision));
    EXPECT_EQ(measure.precision, probe.precisions[i]);
    EXPECT_GT(measure.tokens_per_second, 0);
    ASSERT_TRUE(measure.divergence);
  }
  EXPECT_EQ(verdict->measures[0].divergence, 0);
  double expected = 0;
  for (const auto& [begin, length] : {std::pair(0U, 5U), std::pair(5U, 40U)}) {
    const auto text = std::span(probe.ids).subspan(begin, length);
    const auto fp32 = logits_of(DecoderPrecision::Fp32, text);
    const auto bf16 = logits_of(DecoderPrecision::Bf16, text);
    const std::size_t vocab = fp32.size() / length;
    for (std::size_t at = 0; at < fp32.size(); at += vocab) {
      expected += engine::divergence(std::span(fp32).subspan(at, vocab),
                                     std::span(bf16).subspan(at, vocab));
    }
  }
  EXPECT_GT(expected, 0);
  EXPECT_NEAR(*verdict->measures[1].divergence, expected / 45, expected * 1e-9);
}

TEST(DecoderProbe, TellsSpeedsAloneWhereItIsToldSo) {
  auto probe = probe_of({DecoderPrecision::Bf16, DecoderPrecision::Fp32});
  probe.measures_divergence = false;
  probe.layers_most = 1;
  const auto verdict = measure_decoder(probe, DeviceKind::Cpu);
  ASSERT_TRUE(verdict) << verdict.error().message;
  ASSERT_EQ(verdict->measures.size(), 2U);
  for (const auto& measure : verdict->measures) {
    EXPECT_GT(measure.tokens_per_second, 0);
    EXPECT_FALSE(measure.divergence);
  }
}

// Fewer tokens than the steps that are measured, and no multiple of a block of the cache.
TEST(DecoderProbe, AShortContextIsMeasuredWithinItself) {
  const ShortContext model;
  auto probe = probe_of({DecoderPrecision::Fp32, DecoderPrecision::Bf16});
  probe.source = model.source();
  const auto verdict = measure_decoder(probe, DeviceKind::Cpu);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->measures.size(), 2U);
}

// All bytes of the weights are 255, which is no number in float32.
TEST(DecoderProbe, AModelWithoutNumbersIsNotMeasured) {
  const ShortContext model;
  const std::filesystem::path weights = std::filesystem::path(model.source()) / "model.safetensors";
  auto bytes = *read_file(weights);
  std::uint64_t header_bytes = 0;  // little-endian, in front of the header
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  const auto begin = sizeof header_bytes + header_bytes;
  ASSERT_LT(begin, bytes.size());
  bytes.replace(begin, std::string::npos, std::string(bytes.size() - begin, '\xff'));
  ASSERT_TRUE(write_file_atomically(weights, bytes));
  auto probe = probe_of({DecoderPrecision::Fp32, DecoderPrecision::Bf16});
  probe.source = model.source();
  const auto verdict = measure_decoder(probe, DeviceKind::Cpu);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(verdict.error().message, "the model's logits are not finite numbers");
}

TEST(DecoderProbe, WhatItCannotMeasureIsAnError) {
  auto probe = probe_of({DecoderPrecision::Fp32});
  probe.ids[1] = 1U << 30U;
  const auto unknown_id = measure_decoder(probe, DeviceKind::Cpu);
  ASSERT_FALSE(unknown_id);
  EXPECT_EQ(unknown_id.error().kind, ErrorKind::InvalidArgument);
  probe.source = fixture("none");
  EXPECT_FALSE(measure_decoder(probe, DeviceKind::Cpu));
}

// The fixture has two layers of the same shape, and a head.
TEST(DecoderLoading, TakesTheFirstLayersAlone) {
  const LoadDecoder load{.source = fixture("llama"),
                         .precision = DecoderPrecision::Fp32,
                         .cache_bytes = 1 << 20,
                         .sequences_most = 1};
  const auto whole = load_decoder(load, DeviceKind::Cpu);
  const auto half = load_decoder(load, DeviceKind::Cpu, 1);
  ASSERT_TRUE(whole && half);
  ASSERT_EQ(whole->decoder->spec().layer_count, 2U);
  EXPECT_EQ(half->decoder->spec().layer_count, 1U);
  EXPECT_LT(half->decoder->weights_bytes(), whole->decoder->weights_bytes());
  const auto more_than_there_are = load_decoder(load, DeviceKind::Cpu, 9);
  ASSERT_TRUE(more_than_there_are);
  EXPECT_EQ(more_than_there_are->decoder->weights_bytes(), whole->decoder->weights_bytes());
}

}  // namespace
}  // namespace muster
