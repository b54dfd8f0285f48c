// One place where sizes are checked against each other, for both file formats. Comparisons are
// written so that a NaN fails them: !(x > 0) instead of x <= 0. The bounds are far beyond any
// published model; they only keep later arithmetic within its range.

#include "modelfile/decoder_checks.h"

#include <fmt/format.h>

#include <cmath>

// Each size was checked by itself when it was read; here they are checked against each other, so
// that no code behind this point divides by zero, takes a root or a logarithm of what has none, or
// reads past a head.

namespace muster {
namespace {

constexpr double kFactorMax = 1e6;

bool is_factor(double value) { return value > 0 && value <= kFactorMax; }

std::optional<std::string> rope_fault(const RopeSpec& rope, std::uint32_t head_size) {
  if (rope.style == RopeStyle::None) return std::nullopt;
  if (rope.size < 2 || rope.size % 2 != 0 || rope.size > head_size) {
    return fmt::format("the elements of a head that RoPE turns are not an even number up to {}: {}",
                       head_size, rope.size);
  }
  if (!(rope.base > 1) || rope.base > 1e12) {
    return fmt::format("the base of RoPE is not between 1 and 1e12: {}", rope.base);
  }
  if (!is_factor(rope.factor) || !is_factor(rope.attention_factor)) {
    return fmt::format("a factor of RoPE is not between 0 and 1e6: {}, {}", rope.factor,
                       rope.attention_factor);
  }
  if (rope.original_length == 0 && rope.scaling != RopeScaling::None &&
      rope.scaling != RopeScaling::Linear) {
    return "RoPE is scaled from an original length of 0";
  }
  if (rope.scaling == RopeScaling::Dynamic && rope.size < 4) {
    return "dynamic RoPE needs at least four elements of a head";
  }
  if (rope.scaling == RopeScaling::Llama3 &&
      !(is_factor(rope.low_frequency_factor) && is_factor(rope.high_frequency_factor) &&
        rope.low_frequency_factor < rope.high_frequency_factor)) {
    return "the frequency factors of RoPE are not positive and ascending";
  }
  if (rope.scaling == RopeScaling::Yarn &&
      !(is_factor(rope.beta_slow) && is_factor(rope.beta_fast))) {
    return "the betas of RoPE are not between 0 and 1e6";
  }
  return std::nullopt;
}

/// Families whose queries, keys and values are three times the hidden size, whatever their keys
/// say.
bool has_plain_heads(DecoderFamily family) {
  return family == DecoderFamily::Gpt2 || family == DecoderFamily::Opt ||
         family == DecoderFamily::GptNeox;
}

}  // namespace

std::optional<std::string> decoder_fault(const DecoderSpec& spec) {
  if (spec.head_count % spec.kv_head_count != 0) {
    return fmt::format("the heads are not a multiple of the key-value heads: {} and {}",
                       spec.head_count, spec.kv_head_count);
  }
  // The pass has room for heads x head size in each row, and these families' tensors for the width.
  if (has_plain_heads(spec.family) &&
      (spec.kv_head_count != spec.head_count ||
       std::uint64_t{spec.head_count} * spec.head_size != spec.hidden_size)) {
    return fmt::format("{} heads of {} and {} key-value heads do not make up the hidden size: {}",
                       spec.head_count, spec.head_size, spec.kv_head_count, spec.hidden_size);
  }
  if (spec.experts_per_token > spec.expert_count) {
    return fmt::format("more experts a token than experts: {} of {}", spec.experts_per_token,
                       spec.expert_count);
  }
  if (!(spec.norm_epsilon > 0) || spec.norm_epsilon > 1) {
    return fmt::format("the epsilon of the norms is not between 0 and 1: {}", spec.norm_epsilon);
  }
  for (const double value : {spec.attention_cap, spec.logit_cap}) {
    if (!(value >= 0 && value <= kFactorMax)) {
      return fmt::format("a soft cap is not between 0 and 1e6: {}", value);
    }
  }
  if (!is_factor(spec.attention_scale) || !is_factor(spec.embedding_scale)) {
    return fmt::format("a scale is not between 0 and 1e6: {}, {}", spec.attention_scale,
                       spec.embedding_scale);
  }
  return rope_fault(spec.rope, spec.head_size);
}

}  // namespace muster
