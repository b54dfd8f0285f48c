// A decoder as its users have it: what is asked for is checked, then the model of its device
// computes it.

#include "engine/decoder/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/decoder/cpu_decoder.h"
#include "engine/decoder/device_decoder.h"
#include "engine/decoder/kv_pool.h"
#include "engine/decoder/tensor_source.h"
#include "engine/encoder.h"
#include "engine/gpu.h"
#include "engine/guard.h"
#include "engine/ops/decoder_kernels.h"

namespace muster::engine {
namespace {

// Raise it with every change that can move a bit of a logit or a log-probability, or have another
// token drawn. One for each kind of device.
constexpr int kDecoderVersion = 5;
constexpr int kGpuDecoderVersion = 3;

Error invalid(std::string message) { return {ErrorKind::InvalidArgument, std::move(message)}; }

}  // namespace

struct Decoder::Parts {
  DecoderOptions options;
  std::unique_ptr<DecoderModel> model;
};

Decoder::Decoder(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Decoder::~Decoder() = default;

Result<std::unique_ptr<Decoder>> Decoder::load(DecoderOptions options) {
  if (runs_as_gpu(options.device)) {
    MUSTER_TRY(open_gpu(options.device));
  } else if (options.device != DeviceKind::Cpu) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("decoders do not run on this kind of device: {}",
                             device_kind_name(options.device))};
  }
  return guarded([&]() -> Result<std::unique_ptr<Decoder>> {
    auto source = MUSTER_TRY(TensorSource::open(options.source));
    auto model = runs_as_gpu(options.device) ? DeviceDecoder::load(options, source)
                                             : CpuDecoder::load(options, std::move(source));
    if (!model) {
      return Error{model.error().kind,
                   fmt::format("{}: {}", options.source.string(), model.error().message)};
    }
    auto parts = std::make_unique<Parts>();
    parts->options = std::move(options);
    parts->model = *std::move(model);
    return std::unique_ptr<Decoder>(new Decoder(std::move(parts)));
  });
}

Status Decoder::step(std::span<const StepSequence> sequences, std::span<float> logits) {
  const auto& options = parts_->options;
  std::size_t tokens = 0;
  std::size_t wanted = 0;
  for (const auto& sequence : sequences) {
    const std::size_t end = sequence.position + sequence.tokens.size();
    if (sequence.tokens.empty()) return invalid("a sequence of a step must have a token");
    if (end > length_max()) {
      return invalid(fmt::format("a sequence has at most {} tokens: {}", length_max(), end));
    }
    if (sequence.blocks.size() * kKvBlockTokens < end ||
        std::any_of(sequence.blocks.begin(), sequence.blocks.end(),
                    [&](std::uint32_t block) { return block >= options.block_count; })) {
      return invalid(
          fmt::format("{} blocks of the cache do not hold {} tokens", sequence.blocks.size(), end));
    }
    for (const auto id : sequence.tokens) {
      if (id >= vocab_size()) {
        return invalid(
            fmt::format("a token id is not in the vocabulary of {}: {}", vocab_size(), id));
      }
    }
    tokens += sequence.tokens.size();
    if (sequence.logit_count > sequence.tokens.size()) {
      return invalid(fmt::format("a sequence of a step has {} tokens, and logits are wanted of {}",
                                 sequence.tokens.size(), sequence.logit_count));
    }
    wanted += sequence.logit_count;
  }
  if (tokens > options.step_tokens_max || wanted > options.logits_max) {
    return invalid(fmt::format("a step has at most {} tokens and the logits of {}: {} and {}",
                               options.step_tokens_max, options.logits_max, tokens, wanted));
  }
  if (logits.size() != wanted * vocab_size()) {
    return invalid(
        fmt::format("the logits need {} x {} floats: {}", wanted, vocab_size(), logits.size()));
  }
  return guarded([&]() -> Status {
    parts_->model->run(sequences, logits);
    return Done{};
  });
}

Status Decoder::share(std::size_t count, const std::function<void(std::size_t)>& item) {
  return guarded([&]() -> Status {
    parts_->model->share(count, item);
    return Done{};
  });
}

const DecoderSpec& Decoder::spec() const { return parts_->options.spec; }
std::size_t Decoder::length_max() const { return decoder_length_max(spec()); }
std::size_t Decoder::block_count() const { return parts_->options.block_count; }
std::uint64_t Decoder::weights_bytes() const { return parts_->model->weights_bytes(); }
std::uint64_t Decoder::block_bytes() const { return parts_->model->block_bytes(); }

std::size_t decoder_length_max(const DecoderSpec& spec) {
  const auto& rope = spec.rope;
  // A list in a tensor of a GGUF file is both, the short one and the long one.
  const bool changes =
      rope.scaling == RopeScaling::Dynamic ||
      (rope.scaling == RopeScaling::LongRope && rope.short_divisors != rope.long_divisors);
  return changes && rope.original_length > 0 ? std::min(spec.length_max, rope.original_length)
                                             : spec.length_max;
}

std::string decoder_class(DeviceKind device) {
  if (runs_as_gpu(device)) {
    return fmt::format("{}+{}/decoder-{}", engine_class(device), best_decoder_kernels().name,
                       kGpuDecoderVersion);
  }
  return fmt::format("{}/decoder-{}", best_decoder_kernels().name, kDecoderVersion);
}

}  // namespace muster::engine
