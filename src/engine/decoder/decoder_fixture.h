#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/decoder/decoder.h"
#include "engine/ops/decoder_kernels.h"

namespace muster::engine {

/// A folder of src/engine/testdata/decoders, for tests: a model and what transformers computed with
/// it (tools/fixtures/decoder_models.py).
class DecoderFixture {
 public:
  /// Stops the test program where the fixture cannot be read: it is part of the source tree.
  explicit DecoderFixture(const std::string& name);

  std::unique_ptr<Decoder> load() const;

  std::span<const std::uint32_t> prompt(std::size_t index) const;
  std::span<const float> logits(std::size_t index) const;  // [length, vocab]
  std::span<const std::uint32_t> greedy(std::size_t index) const;

  static constexpr std::size_t kPrompts = 3;
  static constexpr std::size_t kGreedyFrom = 24;  // ids of a prompt before `greedy`

  /// Float32 on one thread, with blocks for four sequences, unless the test changes it.
  DecoderOptions options;

 private:
  std::vector<std::uint32_t> ids_;
  std::vector<float> logits_;
  std::vector<std::uint32_t> greedy_;
};

/// Where the real SmolLM2-135M-Instruct is: MUSTER_SMOLLM2, else .deps/models; empty when it is not
/// there. Its fixture is "smollm2", of which `logits` has the first 1,024 of the last position.
std::filesystem::path smollm2_file();

/// One sequence in a decoder, with blocks of its own: every third from `first_block` on.
class TestSequence {
 public:
  TestSequence(Decoder& decoder, std::uint32_t first_block);

  /// One that begins as `other` does, and shares the first blocks of that: full, and computed.
  TestSequence(Decoder& decoder, std::uint32_t first_block, const TestSequence& other,
               std::size_t shared_count);

  /// Computes tokens behind those before; the logits of the last one.
  std::vector<float> push(std::span<const std::uint32_t> tokens);

  /// What `push` would ask for, to be put together with others in one step.
  StepSequence next(std::span<const std::uint32_t> tokens);

 private:
  Decoder& decoder_;
  std::vector<std::uint32_t> blocks_;
  std::uint32_t position_ = 0;
};

std::uint32_t index_of_largest(std::span<const float> logits);

/// Of the angle between two vectors of one size.
double cosine(std::span<const float> a, std::span<const float> b);

/// The reply of `count` greedy tokens, a token a step, that begins with the likeliest of `logits`.
std::vector<std::uint32_t> greedy_reply(TestSequence& sequence, std::vector<float> logits,
                                        std::size_t count);

/// Expects the fixture's logits of each position, to 1e-4, where tokens come one by one.
void expect_logits_of_every_position(Decoder& decoder, const DecoderFixture& fixture);

/// Expects the fixture's replies of 64 greedy tokens: the prompt in one step, then a token a step.
void expect_greedy_replies(const DecoderFixture& fixture);

}  // namespace muster::engine
