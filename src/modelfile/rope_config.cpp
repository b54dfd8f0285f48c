// The rotary embedding of a config, old form or new. Defaults are a trap here: each family has
// its own base and its own key for the share of a head that turns, and some kinds of scaling
// derive their factor from two lengths when none is stated. All of it is settled here, so the
// code that computes frequencies has no defaults.

#include "modelfile/rope_config.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "modelfile/model_limits.h"
#include "modelfile/shown_name.h"

// transformers 5 writes one object, `rope_parameters`; older configs have `rope_scaling` for what
// is scaled and the rest beside it. Both are read as the newer form: a field is looked for in the
// object first and then beside it.

namespace muster {
namespace {

Error unsupported(std::string message) {
  return Error{ErrorKind::Unsupported, fmt::format("config.json: {}", message)};
}

/// The object of RoPE's parameters and the config around it.
struct RopeFields {
  const JsonFields& config;
  std::optional<JsonFields> inner;

  const JsonFields& holder(std::string_view key) const {
    return inner && inner->has(key) ? *inner : config;
  }
  Result<double> number(std::string_view key, double fallback) const {
    return holder(key).number_or(key, fallback);
  }
};

Result<RopeFields> find_fields(const JsonFields& config) {
  for (const auto* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.has(key)) continue;
    auto inner = MUSTER_TRY(config.inner(key));
    for (const auto* layers : {"full_attention", "sliding_attention"}) {
      if (inner.has(layers)) {
        return unsupported(fmt::format("{} for each kind of layer are not read: {}", key, layers));
      }
    }
    return RopeFields{config, std::move(inner)};
  }
  return RopeFields{config, std::nullopt};
}

/// A list of `count` positive numbers.
Result<std::vector<float>> read_divisors(const RopeFields& fields, const char* key,
                                         std::uint32_t count) {
  const auto& holder = fields.holder(key);
  const auto* list = holder.find(key);
  std::vector<float> divisors;
  for (const auto& item : list != nullptr && list->is_array() ? *list : nlohmann::json::array()) {
    const auto value = item.is_number() ? item.get<float>() : 0.0F;
    if (!(value > 0) || !std::isfinite(value)) break;
    divisors.push_back(value);
  }
  if (divisors.size() == count && list->size() == count) return divisors;
  return holder.wrong(key, fmt::format("a list of {} positive numbers", count));
}

// YaRN's temperature of attention, for a context `factor` times as long as the one trained with.
// Source: Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models",
// section 3.4.
double mscale(double factor, double weight) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

Status read_yarn(const RopeFields& fields, std::uint32_t length_max, RopeSpec& rope) {
  if (!fields.holder("factor").has("factor")) {
    rope.factor = static_cast<double>(length_max) / rope.original_length;
  }
  rope.beta_fast = MUSTER_TRY(fields.number("beta_fast", 32));
  rope.beta_slow = MUSTER_TRY(fields.number("beta_slow", 1));
  rope.is_truncated = MUSTER_TRY(fields.holder("truncate").boolean_or("truncate", true));
  const auto weight = MUSTER_TRY(fields.number("mscale", 0));
  const auto weight_of_all = MUSTER_TRY(fields.number("mscale_all_dim", 0));
  const double natural = weight != 0 && weight_of_all != 0
                             ? mscale(rope.factor, weight) / mscale(rope.factor, weight_of_all)
                             : mscale(rope.factor, 1);
  rope.attention_factor = MUSTER_TRY(fields.number("attention_factor", natural));
  return Done{};
}

Status read_long(const RopeFields& fields, std::uint32_t length_max, RopeSpec& rope) {
  if (!fields.holder("factor").has("factor")) {
    rope.factor = static_cast<double>(length_max) / rope.original_length;
  }
  rope.short_divisors = MUSTER_TRY(read_divisors(fields, "short_factor", rope.size / 2));
  rope.long_divisors = MUSTER_TRY(read_divisors(fields, "long_factor", rope.size / 2));
  // Source: _compute_longrope_parameters, after section 4.2 of the LongRoPE paper.
  const double natural =
      rope.factor <= 1 ? 1 : std::sqrt(1 + std::log(rope.factor) / std::log(rope.original_length));
  rope.attention_factor = MUSTER_TRY(fields.number("attention_factor", natural));
  return Done{};
}

Result<RopeScaling> scaling_of(std::string_view kind, ModelFamily family) {
  // Phi-3's first configs name LongRoPE otherwise. Source: configuration_phi3.py.
  if (family == ModelFamily::Phi3 && (kind == "su" || kind == "yarn")) return RopeScaling::LongRope;
  if (kind == "default") return RopeScaling::None;
  if (kind == "linear") return RopeScaling::Linear;
  if (kind == "dynamic") return RopeScaling::Dynamic;
  if (kind == "yarn") return RopeScaling::Yarn;
  if (kind == "llama3") return RopeScaling::Llama3;
  if (kind == "longrope") return RopeScaling::LongRope;
  return unsupported(
      fmt::format("rope_type is not known: {} (known are default, linear, dynamic, "
                  "yarn, llama3, longrope)",
                  shown_name(kind)));
}

Status read_scaling(const RopeFields& fields, std::uint32_t length_max, RopeSpec& rope) {
  const auto& holder = fields.holder("original_max_position_embeddings");
  rope.original_length =
      MUSTER_TRY(holder.positive_or("original_max_position_embeddings", kRowsMax, length_max));
  rope.factor = MUSTER_TRY(fields.number("factor", 1));
  switch (rope.scaling) {
    case RopeScaling::None:
      rope.factor = 1;
      return Done{};
    case RopeScaling::Linear:
      return Done{};
    case RopeScaling::Dynamic:
      rope.original_length = length_max;  // its code looks at max_position_embeddings alone
      return Done{};
    case RopeScaling::Yarn:
      return read_yarn(fields, length_max, rope);
    case RopeScaling::Llama3:
      rope.low_frequency_factor = MUSTER_TRY(fields.number("low_freq_factor", 1));
      rope.high_frequency_factor = MUSTER_TRY(fields.number("high_freq_factor", 4));
      return Done{};
    case RopeScaling::LongRope:
      return read_long(fields, length_max, rope);
  }
  return Done{};
}

}  // namespace

Result<RopeSpec> parse_rope(const JsonFields& config, ModelFamily family, std::uint32_t head_size,
                            std::uint32_t length_max) {
  const auto fields = MUSTER_TRY(find_fields(config));
  const bool is_neox = family == ModelFamily::GptNeox;
  RopeSpec rope;
  rope.style = RopeStyle::Halves;
  const auto base = MUSTER_TRY(config.number_or(is_neox ? "rotary_emb_base" : "rope_theta",
                                                family == ModelFamily::Mixtral ? 1e6 : 1e4));
  rope.base = MUSTER_TRY(fields.number("rope_theta", base));
  const auto part = MUSTER_TRY(
      config.number_or(is_neox ? "rotary_pct" : "partial_rotary_factor", is_neox ? 0.25 : 1.0));
  const auto share = MUSTER_TRY(fields.number("partial_rotary_factor", part));
  if (!(share > 0 && share <= 1)) {
    return config.wrong(is_neox ? "rotary_pct" : "partial_rotary_factor", "a number of 0 to 1");
  }
  rope.size = static_cast<std::uint32_t>(head_size * share);
  const auto& typed = fields.inner ? *fields.inner : config;
  const auto old_kind = fields.inner ? MUSTER_TRY(typed.text_or("type", "default")) : "default";
  const auto kind = fields.inner ? MUSTER_TRY(typed.text_or("rope_type", old_kind)) : old_kind;
  rope.scaling = MUSTER_TRY(scaling_of(kind, family));
  MUSTER_TRY(read_scaling(fields, length_max, rope));
  return rope;
}

}  // namespace muster
