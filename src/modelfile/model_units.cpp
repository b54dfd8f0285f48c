// Tensors are assigned to units by name alone. Files name the same tensor with or without the
// base model's prefix, and multimodal ones in two orders; the prefix is taken off first, so that
// one table of names serves all. What belongs nowhere counts with the head, since it takes
// memory all the same.

#include "modelfile/model_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "modelfile/family_table.h"

namespace muster {
namespace {

// Beside the language model of a multimodal class. Source: transformers 5.17, modeling_gemma3.py.
constexpr const char* kVisionTower = "model.vision_tower";
constexpr const char* kProjector = "model.multi_modal_projector";

/// Where one tensor belongs.
struct Place {
  UnitKind kind = UnitKind::Head;
  std::uint32_t layer = 0;  // Block
  std::string module;
};

// Whether `name` is the module itself or lies within it.
bool is_within(std::string_view name, std::string_view module) {
  return name.starts_with(module) && (name.size() == module.size() || name[module.size()] == '.');
}

/// Which unit each tensor name belongs to.
class UnitNames {
 public:
  explicit UnitNames(const TransformerConfig& config)
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

  Place place(std::string_view name) const {
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

  std::string block_name(std::uint32_t layer) const {
    if (config_.family != ModelFamily::T5) {
      return fmt::format("{}{}.{}", prefix_, traits_.blocks, layer);
    }
    return layer < encoder_layers_ ? fmt::format("encoder.block.{}", layer)
                                   : fmt::format("decoder.block.{}", layer - encoder_layers_);
  }

  std::string within_base(std::string_view module) const { return prefix_ + std::string(module); }

  /// Whether the tensor is the output projection over the vocabulary.
  bool is_head_table(std::string_view name) const {
    return is_within(without_prefix(name), head_table()) && !name.ends_with(".bias");
  }

  bool is_in_table(std::string_view name, std::string_view table) const {
    return is_within(without_prefix(name), table);
  }

  /// Whether the name is that of a class with a head: "model.layers.0...".
  bool has_base_prefix(std::string_view name) const {
    return traits_.base.empty() || is_within(name, traits_.base);
  }

  std::string_view head_table() const {
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

 private:
  // Files may name the base model's parts with or without its prefix, and multimodal ones in the
  // order of transformers 4 (language_model.model) or 5 (model.language_model).
  std::string_view without_prefix(std::string_view name) const {
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

  std::optional<Place> place_vision(std::string_view name) const {
    if (!config_.is_nested) return std::nullopt;
    // transformers 4 left "model." out.
    const auto full =
        name.starts_with("model.") ? std::string(name) : fmt::format("model.{}", name);
    for (const auto* module : {kVisionTower, kProjector}) {
      if (is_within(full, module)) return Place{UnitKind::Embedding, 0, module};
    }
    return std::nullopt;
  }

  std::optional<Place> place_block(std::string_view inner) const {
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
  std::optional<Place> place_in(std::string_view inner, std::string_view list, std::uint32_t first,
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

  const TransformerConfig& config_;
  const FamilyTraits& traits_;
  std::string prefix_;
  std::uint32_t encoder_layers_ = 0;
};

void add_module(ModelUnit& unit, const std::string& module) {
  if (std::find(unit.modules.begin(), unit.modules.end(), module) == unit.modules.end()) {
    unit.modules.push_back(module);
  }
}

void add_tensor(ModelUnit& unit, std::uint32_t index, const WeightTensor& tensor,
                const std::string& module) {
  unit.tensors.push_back(index);
  unit.stored_bytes += tensor.bytes;
  add_module(unit, module);
}

/// Modules that have no tensor of their own and still stand in the class: a device map names them.
void add_empty_modules(const TransformerConfig& config, const UnitNames& names,
                       ModelUnit& embedding) {
  for (const auto module : family_traits(config.family).before) {
    const bool is_tied_copy = config.family == ModelFamily::T5 &&
                              !(config.is_encoder_only && module.starts_with("decoder."));
    if (module == "rotary_emb" || is_tied_copy) add_module(embedding, names.within_base(module));
  }
}

/// Puts a unit's modules into the order of computation, whatever the order of the file: those that
/// the family does not name before the head.
void order_modules(const TransformerConfig& config, const UnitNames& names, ModelUnit& unit) {
  const auto& traits = family_traits(config.family);
  std::vector<std::string> first{kVisionTower, kProjector};
  if (unit.kind == UnitKind::Block) first.push_back(unit.name);
  for (const auto list : {traits.before, traits.after}) {
    for (const auto module : list) first.push_back(names.within_base(module));
  }
  const auto rank = [&](const std::string& module) {
    const auto at = std::find(first.begin(), first.end(), module) - first.begin();
    const bool is_head =
        std::find(traits.head.begin(), traits.head.end(), module) != traits.head.end();
    return is_head ? static_cast<std::ptrdiff_t>(first.size()) + 1 : at;
  };
  std::stable_sort(unit.modules.begin(), unit.modules.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

std::vector<ModelUnit> make_chain(const TransformerConfig& config, const UnitNames& names) {
  const auto& traits = family_traits(config.family);
  std::vector<ModelUnit> units;
  units.push_back({UnitKind::Embedding, names.within_base(traits.before[0]), {}, 0, {}, 0});
  for (std::uint32_t i = 0; i < config.shape.layers.size(); ++i) {
    units.push_back({UnitKind::Block, names.block_name(i), {}, i, {}, 0});
  }
  units.push_back({UnitKind::Head, std::string(traits.head[0]), {}, 0, {}, 0});
  return units;
}

/// Whether the head is tied, from the files: the config says so and they hold no table of its own.
Status settle_head(const TransformerConfig& config, const UnitNames& names,
                   ModelDescription& model) {
  if (!model.shape.has_head || model.weight_source == WeightSource::Config) return Done{};
  const bool has_table =
      std::any_of(model.tensors.begin(), model.tensors.end(),
                  [&](const WeightTensor& tensor) { return names.is_head_table(tensor.name); });
  model.shape.has_tied_head = config.is_tied && !has_table;
  if (has_table || config.is_tied) return Done{};
  // Embedding models are published as the base model alone, under the class they were trained as.
  const bool is_base_alone =
      std::none_of(model.tensors.begin(), model.tensors.end(),
                   [&](const WeightTensor& tensor) { return names.has_base_prefix(tensor.name); });
  if (is_base_alone) {
    model.shape.has_head = false;
    return Done{};
  }
  return Error{ErrorKind::Corrupt,
               fmt::format("the weight files hold no tensor of {}, and tie_word_embeddings is "
                           "false",
                           names.head_table())};
}

// Bytes of the table that a tied head reads.
std::uint64_t table_bytes(const TransformerConfig& config, const UnitNames& names,
                          const ModelDescription& model) {
  const auto& traits = family_traits(config.family);
  const auto bytes_of = [&](std::string_view table) {
    std::uint64_t bytes = 0;
    for (const auto index : model.units.front().tensors) {
      const auto& tensor = model.tensors[index];
      if (names.is_in_table(tensor.name, table)) bytes += tensor.bytes;
    }
    return bytes;
  };
  // A file of T5 may hold the table under one of the names that share it.
  for (const auto module : traits.before) {
    if (const auto bytes = bytes_of(module == traits.before[0] ? traits.table : module)) {
      return bytes;
    }
  }
  return 0;
}

}  // namespace

// Order matters: settle_head decides whether the head is tied, and a tied head gets a module
// although it has no tensor. Only then can a head without modules be dropped.
Status group_into_units(const TransformerConfig& config, ModelDescription& model) {
  const UnitNames names(config);
  model.units = make_chain(config, names);
  for (std::uint32_t i = 0; i < model.tensors.size(); ++i) {
    const auto place = names.place(model.tensors[i].name);
    auto& unit = place.kind == UnitKind::Embedding ? model.units.front()
                 : place.kind == UnitKind::Head    ? model.units.back()
                                                   : model.units[1 + place.layer];
    add_tensor(unit, i, model.tensors[i], place.module);
  }
  for (const auto& unit : model.units) {
    if (unit.kind == UnitKind::Head || !unit.tensors.empty()) continue;
    return Error{ErrorKind::Corrupt,
                 fmt::format("the weight files hold no tensor of {}", unit.name)};
  }
  MUSTER_TRY(settle_head(config, names, model));
  add_empty_modules(config, names, model.units.front());
  auto& head = model.units.back();
  if (model.shape.has_tied_head) {
    add_module(head, std::string(family_traits(config.family).head[0]));
    model.tied_bytes = table_bytes(config, names, model);
  }
  for (auto& unit : model.units) order_modules(config, names, unit);
  if (head.modules.empty()) {
    model.units.pop_back();
  } else if (!model.shape.has_head) {
    head.name = head.modules.front();
  }
  return Done{};
}

}  // namespace muster
