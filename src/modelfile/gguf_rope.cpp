// Frequencies may be scaled by a formula, or be stored as divisors in tensors of the file. Where
// both ask for something the file is refused: llama.cpp applies both, and neither alone is right.

#include "modelfile/gguf_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "modelfile/dequantize.h"
#include "modelfile/model_limits.h"
#include "modelfile/shown_name.h"

namespace muster {
namespace {

/// The floats of a small F32 tensor; empty when there is none of that name.
Result<std::vector<float>> read_divisors(const GgufFile& file, const char* name,
                                         std::uint32_t count) {
  const auto* tensor = file.find(name);
  if (tensor == nullptr) return std::vector<float>();
  std::vector<float> values(count);
  if (tensor->shape != std::vector<std::int64_t>{count} || tensor->type->name != "F32") {
    return corrupt_error(fmt::format("{} is not F32 of {} elements", name, count));
  }
  MUSTER_TRY(dequantize(*tensor->type, tensor->data, values));
  const bool are_positive = std::all_of(
      values.begin(), values.end(), [](float value) { return std::isfinite(value) && value > 0; });
  if (are_positive) return values;
  return corrupt_error(fmt::format("{} holds a number that is not positive", name));
}

/// What the converter writes where a config has attention_factor or attn_factor, or
/// extrapolation_factor. The first two have one key: one takes the place of the natural factor, the
/// other multiplies it, and a file does not tell which it is. So each may say what is natural only.
/// Source: conversion/base.py of llama.cpp; transformers 5.17, _compute_yarn_parameters.
Status check_yarn_factors(const GgufKeys& keys, double natural) {
  const std::pair<const char*, double> usual[] = {{"rope.scaling.yarn_ext_factor", 1.0},
                                                  {"rope.scaling.yarn_attn_factor", natural}};
  constexpr double kRounding = 1e-6;  // of a float32
  for (const auto& [name, value] : usual) {
    const auto stated = MUSTER_TRY(keys.real(name, value));
    if (std::abs(stated - value) <= kRounding * value) continue;
    return Error{ErrorKind::Unsupported, fmt::format("{}.{} is computed only as {:.6g}: {:.6g}",
                                                     keys.architecture(), name, value, stated)};
  }
  return Done{};
}

Status read_scaling(const GgufKeys& keys, RopeSpec& rope) {
  const auto kind = MUSTER_TRY(keys.text("rope.scaling.type", "linear"));
  // The older key of two for the same thing.
  const auto old_factor = MUSTER_TRY(keys.real("rope.scale_linear", 1.0));
  rope.factor = MUSTER_TRY(keys.real("rope.scaling.factor", old_factor));
  // Source: llama-model.cpp of llama.cpp, rope_freq_scale_train: 0 stands for none.
  if (rope.factor == 0) rope.factor = 1;
  rope.attention_factor = MUSTER_TRY(keys.real("rope.scaling.attn_factor", 1.0));
  if (kind == "none" || kind == "longrope") return Done{};
  if (kind == "linear") {
    if (rope.factor != 1) rope.scaling = RopeScaling::Linear;
    return Done{};
  }
  if (kind != "yarn") {
    return Error{ErrorKind::Unsupported, fmt::format("{}.rope.scaling.type is not known: {}",
                                                     keys.architecture(), shown_name(kind))};
  }
  rope.scaling = RopeScaling::Yarn;
  rope.beta_fast = MUSTER_TRY(keys.real("rope.scaling.yarn_beta_fast", 32.0));
  rope.beta_slow = MUSTER_TRY(keys.real("rope.scaling.yarn_beta_slow", 1.0));
  // Source: llama-context.cpp, yarn_attn_factor; the same as transformers' get_mscale.
  const double natural = rope.factor > 1 ? 0.1 * std::log(rope.factor) + 1 : 1;
  rope.attention_factor *= natural;
  return check_yarn_factors(keys, natural);
}

}  // namespace

Status read_gguf_rope(const GgufKeys& keys, const GgufFile& file, DecoderSpec& spec) {
  auto& rope = spec.rope;
  rope.size = MUSTER_TRY(keys.number("rope.dimension_count", kHeadWidthMax, spec.head_size));
  rope.base = MUSTER_TRY(keys.real("rope.freq_base", 10000.0));
  rope.original_length =
      MUSTER_TRY(keys.number("rope.scaling.original_context_length", kRowsMax, spec.length_max));
  MUSTER_TRY(read_scaling(keys, rope));
  const auto pairs = rope.size / 2;
  auto every = MUSTER_TRY(read_divisors(file, "rope_freqs.weight", pairs));
  rope.short_divisors = MUSTER_TRY(read_divisors(file, "rope_factors_short.weight", pairs));
  rope.long_divisors = MUSTER_TRY(read_divisors(file, "rope_factors_long.weight", pairs));
  if (!every.empty()) rope.short_divisors = rope.long_divisors = std::move(every);
  if (rope.short_divisors.size() != rope.long_divisors.size()) {
    return corrupt_error(
        "one of rope_factors_short.weight and rope_factors_long.weight is missing");
  }
  if (rope.short_divisors.empty()) {
    // The converter writes the type for every architecture, and the lists for few.
    const auto kind = MUSTER_TRY(keys.text("rope.scaling.type", ""));
    if (kind != "longrope") return Done{};
    return corrupt_error(
        fmt::format("{}.rope.scaling.type is longrope, and rope_factors_short.weight and "
                    "rope_factors_long.weight are missing",
                    keys.architecture()));
  }
  if (rope.scaling != RopeScaling::None) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}.rope.scaling.type together with frequencies in a tensor is not "
                             "computed",
                             keys.architecture())};
  }
  rope.scaling = RopeScaling::LongRope;
  return Done{};
}

}  // namespace muster
