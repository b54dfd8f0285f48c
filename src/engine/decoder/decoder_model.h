#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace muster::engine {

/// What a step computes of one sequence: its next tokens, whose keys and values go into its blocks.
struct StepSequence {
  std::span<const std::uint32_t> tokens;  // at least one
  std::uint32_t position = 0;             // of the first: so many are in the cache
  std::span<const std::uint32_t> blocks;  // enough for position + tokens; others may share those
                                          // that end before position
  std::uint32_t logit_count = 0;          // of its last tokens the logits are wanted
};

/// The layers of a decoder and its cache of keys and values on one kind of device.
///
/// Threads: owned by one.
class DecoderModel {
 public:
  virtual ~DecoderModel() = default;

  /// Computes a checked step. Shapes: logits [tokens that want them, vocab], in the order of the
  /// sequences and their tokens.
  virtual void run(std::span<const StepSequence> sequences, std::span<float> logits) = 0;

  /// Calls `item(i)` for every i below `count`, each once, on the cores that compute the steps.
  /// Throws what an item throws, when none is at work any more.
  virtual void share(std::size_t count, const std::function<void(std::size_t)>& item) = 0;

  virtual std::uint64_t weights_bytes() const = 0;
  virtual std::uint64_t block_bytes() const = 0;  // of the cache
};

}  // namespace muster::engine
