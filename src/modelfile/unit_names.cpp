// Files name the same tensor with or without the base model's prefix, and multimodal ones in two
// orders; the prefix is taken off first, so that one table of names serves all.

#include "modelfile/unit_names.h"

#include <fmt/format.h>

#include <charconv>
#include <initializer_list>
#include <utility>

namespace muster {
namespace {

// Whether `name` is the module itself or lies within it.
bool is_within(std::string_view name, std::string_view module) {
  return name.starts_with(module) && (name.size() == module.size() || name[module.size()] == '.');
}

}  // namespace

UnitNames::UnitNames(const TransformerConfig& config)
    : config_(config), traits_(family_traits(config.family)) {
  for (const auto& layer : config.shape.layers) {
    if (layer.is_encoder) ++encoder_layers_;
  }
  if (config.is_nested) {
    prefix_ = "model.language_model.";
  } else if (config.task != TaskHead::None && !traits_.base.empty()) {
    prefix_ = fmt::format("{}.", traits_.base);
  }
}

UnitNames::Place UnitNames::place(std::string_view name) const {
  if (auto vision = place_vision(name)) return *std::move(vision);
  const auto inner = without_prefix(name);
  if (auto block = place_block(inner)) return *std::move(block);
  for (const auto module : traits_.before) {
    if (is_within(inner, module)) return {UnitKind::Embedding, 0, within_base(module)};
  }
  for (const auto module : traits_.after) {
    if (is_within(inner, module)) return {UnitKind::Head, 0, within_base(module)};
  }
  for (const auto module : traits_.head) {
    if (is_within(inner, module)) return {UnitKind::Head, 0, std::string(traits_.head[0])};
  }
  return {UnitKind::Head, 0, std::string(inner.substr(0, inner.find('.')))};
}

std::string UnitNames::block_name(std::uint32_t layer) const {
  if (config_.family != ModelFamily::T5) {
    return fmt::format("{}{}.{}", prefix_, traits_.blocks, layer);
  }
  return layer < encoder_layers_ ? fmt::format("encoder.block.{}", layer)
                                 : fmt::format("decoder.block.{}", layer - encoder_layers_);
}

std::string UnitNames::within_base(std::string_view module) const {
  return prefix_ + std::string(module);
}

bool UnitNames::is_head_table(std::string_view name) const {
  return is_within(without_prefix(name), head_table()) && !name.ends_with(".bias");
}

bool UnitNames::is_in_table(std::string_view name, std::string_view table) const {
  return is_within(without_prefix(name), table);
}

bool UnitNames::has_base_prefix(std::string_view name) const {
  return traits_.base.empty() || is_within(name, traits_.base);
}

std::string_view UnitNames::head_table() const {
  switch (config_.family) {
    case ModelFamily::Bert:
      return "cls.predictions.decoder";
    case ModelFamily::Roberta:
    case ModelFamily::Mpnet:
      return "lm_head.decoder";
    case ModelFamily::DistilBert:
      return "vocab_projector";
    default:
      return "lm_head";
  }
}

// Files may name the base model's parts with or without its prefix, and multimodal ones in the
// order of transformers 4 (language_model.model) or 5 (model.language_model).
std::string_view UnitNames::without_prefix(std::string_view name) const {
  if (config_.is_nested) {
    for (const std::string_view prefix :
         {"model.language_model.", "language_model.model.", "language_model."}) {
      if (name.starts_with(prefix)) return name.substr(prefix.size());
    }
  }
  const auto base = traits_.base;
  if (!base.empty() && name.size() > base.size() && is_within(name, base)) {
    name.remove_prefix(base.size() + 1);
  }
  return is_within(name, "embed_out") ? "lm_head.weight" : name;
}

std::optional<UnitNames::Place> UnitNames::place_vision(std::string_view name) const {
  if (!config_.is_nested) return std::nullopt;
  // transformers 4 left "model." out.
  const auto full = name.starts_with("model.") ? std::string(name) : fmt::format("model.{}", name);
  for (const auto* module : {kVisionTower, kProjector}) {
    if (is_within(full, module)) return Place{UnitKind::Embedding, 0, module};
  }
  return std::nullopt;
}

std::optional<UnitNames::Place> UnitNames::place_block(std::string_view inner) const {
  if (config_.family != ModelFamily::T5) {
    return place_in(inner, traits_.blocks, 0,
                    static_cast<std::uint32_t>(config_.shape.layers.size()));
  }
  const auto layers = static_cast<std::uint32_t>(config_.shape.layers.size());
  // The encoder's last normalisation runs with its last block, before the decoder.
  if (!config_.is_encoder_only && is_within(inner, "encoder.final_layer_norm")) {
    return Place{UnitKind::Block, encoder_layers_ - 1, "encoder.final_layer_norm"};
  }
  if (auto block = place_in(inner, "encoder.block", 0, encoder_layers_)) return block;
  return place_in(inner, "decoder.block", encoder_layers_, layers - encoder_layers_);
}

// "layers.12.mlp..." within a list of `count` blocks; what is beyond them goes with the head.
std::optional<UnitNames::Place> UnitNames::place_in(std::string_view inner, std::string_view list,
                                                    std::uint32_t first,
                                                    std::uint32_t count) const {
  if (!is_within(inner, list) || inner.size() <= list.size() + 1) return std::nullopt;
  const auto* begin = inner.data() + list.size() + 1;
  const auto* end = inner.data() + inner.size();
  std::uint32_t index = 0;
  const auto [rest, error] = std::from_chars(begin, end, index);
  if (error != std::errc() || (rest != end && *rest != '.')) return std::nullopt;
  if (index >= count) {
    return Place{UnitKind::Head, 0, within_base(fmt::format("{}.{}", list, index))};
  }
  return Place{UnitKind::Block, first + index, block_name(first + index)};
}

}  // namespace muster
