#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/decoder/decoder_model.h"
#include "spec/decoder_spec.h"
#include "spec/device.h"
#include "spec/generation.h"

namespace muster::engine {

struct DecoderOptions {
  std::filesystem::path source;  // a GGUF file or a folder of safetensors
  DecoderSpec spec;              // of that source
  DecoderPrecision precision = DecoderPrecision::Fp32;
  std::size_t thread_count = 1;
  /// What each thread but the caller's calls first, with its number from 1 on.
  std::function<void(std::size_t)> on_thread_start = {};
  std::size_t step_tokens_max = 512;
  std::size_t logits_max = 64;          // rows of them that a step gives
  std::size_t block_count = 0;          // of the cache of keys and values, 16 positions each
  DeviceKind device = DeviceKind::Cpu;  // a GPU: the one that is visible to the process
  /// Of the cache; a GPU has Auto alone.
  KvCacheDtype kv_cache_dtype = KvCacheDtype::Auto;
};

/// A decoder with its packed weights and its cache of keys and values.
///
/// Logits depend on the sequence and the equality class (model, precision, numbers of the cache,
/// instruction set or GPU), not on the other sequences of a step or the number of threads; on a CPU
/// nor on how a prompt was cut into steps.
///
/// Threads: owned by one, which must have called `enter_lane()` for the device.
class Decoder {
 public:
  /// Maps the weights and packs them, layer by layer.
  ///
  /// Errors: those of the files (a missing or misshapen tensor by name); Unsupported (a family, a
  /// type of tensor, a precision, a cache or a device that is not computed); ResourceExhausted.
  static Result<std::unique_ptr<Decoder>> load(DecoderOptions options);
  ~Decoder();

  /// Computes the tokens of all sequences and the logits that are wanted.
  ///
  /// Shapes: logits [tokens that want them, vocab], in the order of the sequences and their tokens.
  /// Errors: InvalidArgument (no token, an id outside of the vocabulary, more tokens, logits or
  /// positions than there is room for, blocks that do not cover the positions).
  Status step(std::span<const StepSequence> sequences, std::span<float> logits);

  /// Calls `item(i)` for every i below `count`, each once, on all cores of a CPU device and by the
  /// caller for a GPU: for what is done with logits of many sequences.
  ///
  /// Errors: what an item has thrown; some may not have been called then.
  Status share(std::size_t count, const std::function<void(std::size_t)>& item);

  const DecoderSpec& spec() const;
  std::size_t vocab_size() const { return spec().vocab_size; }
  /// Positions of a sequence at most: what the model was made for; of a model whose frequencies
  /// would change beyond a length, that length.
  std::size_t length_max() const;
  std::size_t block_count() const;

  std::uint64_t weights_bytes() const;
  std::uint64_t block_bytes() const;

 private:
  struct Parts;
  explicit Decoder(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// The length that `Decoder::length_max` tells, without a model.
std::size_t decoder_length_max(const DecoderSpec& spec);

/// What of this machine can change a bit of a decoder's logits or have another token drawn: the
/// instruction set in use, for a GPU that and torch's version too, and the engine's version.
std::string decoder_class(DeviceKind device);

}  // namespace muster::engine
