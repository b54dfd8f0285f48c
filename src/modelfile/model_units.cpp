// The chain of units is made from the config, and tensors are assigned to it by name alone
// (unit_names.cpp). Whether a head is tied, and in which order a unit's modules are computed, is
// settled afterwards.

#include "modelfile/model_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "modelfile/family_table.h"
#include "modelfile/unit_names.h"

namespace muster {
namespace {

void add_module(ModelUnit& unit, const std::string& module) {
  if (std::find(unit.modules.begin(), unit.modules.end(), module) == unit.modules.end()) {
    unit.modules.push_back(module);
  }
}

// The index in the chain of Embedding, blocks, Head.
std::size_t unit_index(const UnitNames::Place& place, std::size_t unit_count) {
  if (place.kind == UnitKind::Embedding) return 0;
  return place.kind == UnitKind::Head ? unit_count - 1 : std::size_t{1} + place.layer;
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
  std::vector<std::string> first{UnitNames::kVisionTower, UnitNames::kProjector};
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
  // Of all units: a file may name a million modules that no family has, all of them in the head.
  std::set<std::pair<std::size_t, std::string>> modules;
  for (std::uint32_t i = 0; i < model.tensors.size(); ++i) {
    const auto place = names.place(model.tensors[i].name);
    const auto index = unit_index(place, model.units.size());
    auto& unit = model.units[index];
    unit.tensors.push_back(i);
    unit.stored_bytes += model.tensors[i].bytes;
    if (modules.emplace(index, place.module).second) unit.modules.push_back(place.module);
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
