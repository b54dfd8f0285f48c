#include "engine/decoder/decoder_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "modelfile/decoder_config.h"
#include "modelfile/safetensors.h"

namespace muster::engine {
namespace {

template <typename T>
std::vector<T> read_tensor(const std::string& file, const SafetensorsHeader& header,
                           const std::string& name) {
  const auto& entry = header.tensors.at(name);
  std::vector<T> values(entry.size / sizeof(T));
  std::memcpy(values.data(), file.data() + entry.begin, entry.size);
  return values;
}

}  // namespace

DecoderFixture::DecoderFixture(const std::string& name) {
  const char* testdata = std::getenv("MUSTER_TESTDATA");  // of a program that was sent elsewhere
  const auto folder =
      (testdata != nullptr ? std::filesystem::path(testdata)
                           : std::filesystem::path(MUSTER_SOURCE_DIR) / "src/engine/testdata") /
      "decoders" / name;
  options.source = name == "smollm2" ? smollm2_file() : folder;
  auto spec = read_decoder_spec(options.source);
  MUSTER_CHECK(spec.has_value());
  options.spec = *std::move(spec);
  options.block_count = 64;
  const auto file = read_file(folder / "expected.safetensors");
  MUSTER_CHECK(file.has_value());
  const auto header = parse_safetensors_header(std::as_bytes(std::span(*file)), file->size());
  MUSTER_CHECK(header.has_value());
  ids_ = read_tensor<std::uint32_t>(*file, *header, "ids");
  logits_ = read_tensor<float>(*file, *header, "logits");
  greedy_ = read_tensor<std::uint32_t>(*file, *header, "greedy");
}

std::unique_ptr<Decoder> DecoderFixture::load() const {
  auto decoder = Decoder::load(options);
  MUSTER_CHECK(decoder.has_value());
  return *std::move(decoder);
}

std::span<const std::uint32_t> DecoderFixture::prompt(std::size_t index) const {
  const std::size_t length = ids_.size() / kPrompts;
  return std::span(ids_).subspan(index * length, length);
}

std::span<const float> DecoderFixture::logits(std::size_t index) const {
  const std::size_t size = logits_.size() / kPrompts;
  return std::span(logits_).subspan(index * size, size);
}

std::span<const std::uint32_t> DecoderFixture::greedy(std::size_t index) const {
  const std::size_t length = greedy_.size() / kPrompts;
  return std::span(greedy_).subspan(index * length, length);
}

std::filesystem::path smollm2_file() {
  const char* named = std::getenv("MUSTER_SMOLLM2");
  const auto file = named != nullptr ? std::filesystem::path(named)
                                     : std::filesystem::path(MUSTER_SOURCE_DIR) /
                                           ".deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  std::error_code ignored;
  return std::filesystem::exists(file, ignored) ? file : std::filesystem::path();
}

TestSequence::TestSequence(Decoder& decoder, std::uint32_t first_block) : decoder_(decoder) {
  for (auto block = first_block; block < decoder.block_count(); block += 3) {
    blocks_.push_back(block);
  }
}

TestSequence::TestSequence(Decoder& decoder, std::uint32_t first_block, const TestSequence& other,
                           std::size_t shared_count)
    : TestSequence(decoder, first_block) {
  const auto first = other.blocks_.begin();
  blocks_.insert(blocks_.begin(), first, first + static_cast<std::ptrdiff_t>(shared_count));
  position_ = static_cast<std::uint32_t>(shared_count * kKvBlockTokens);
}

StepSequence TestSequence::next(std::span<const std::uint32_t> tokens) {
  const auto position = position_;
  position_ += static_cast<std::uint32_t>(tokens.size());
  return {.tokens = tokens, .position = position, .blocks = blocks_, .logit_count = 1};
}

std::vector<float> TestSequence::push(std::span<const std::uint32_t> tokens) {
  const StepSequence step = next(tokens);
  std::vector<float> logits(decoder_.vocab_size());
  MUSTER_CHECK(decoder_.step(std::span(&step, 1), logits).has_value());
  return logits;
}

std::uint32_t index_of_largest(std::span<const float> logits) {
  return static_cast<std::uint32_t>(std::max_element(logits.begin(), logits.end()) -
                                    logits.begin());
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0;
  double of_a = 0;
  double of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * b[i];
    of_a += double{a[i]} * a[i];
    of_b += double{b[i]} * b[i];
  }
  return product / std::sqrt(of_a * of_b);
}

std::vector<std::uint32_t> greedy_reply(TestSequence& sequence, std::vector<float> logits,
                                        std::size_t count) {
  std::vector<std::uint32_t> tokens;
  while (tokens.size() < count) {
    tokens.push_back(index_of_largest(logits));
    logits = sequence.push(std::span(tokens).last(1));
  }
  return tokens;
}

void expect_logits_of_every_position(Decoder& decoder, const DecoderFixture& fixture) {
  const std::size_t vocab = decoder.vocab_size();
  for (std::size_t i = 0; i < DecoderFixture::kPrompts; ++i) {
    TestSequence sequence(decoder, static_cast<std::uint32_t>(i));
    const auto prompt = fixture.prompt(i);
    for (std::size_t t = 0; t < prompt.size(); ++t) {
      const auto logits = sequence.push(prompt.subspan(t, 1));
      for (std::size_t v = 0; v < vocab; ++v) {
        ASSERT_NEAR(logits[v], fixture.logits(i)[t * vocab + v], 1e-4)
            << "prompt " << i << " position " << t << " token " << v;
      }
    }
  }
}

void expect_greedy_replies(const DecoderFixture& fixture) {
  const auto decoder = fixture.load();
  for (std::size_t i = 0; i < DecoderFixture::kPrompts; ++i) {
    TestSequence sequence(*decoder, static_cast<std::uint32_t>(i));
    const auto first = sequence.push(fixture.prompt(i).first(DecoderFixture::kGreedyFrom));
    const auto tokens = greedy_reply(sequence, first, fixture.greedy(i).size());
    EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), fixture.greedy(i).begin()))
        << "prompt " << i;
  }
}

}  // namespace muster::engine
