#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "modelfile/family_table.h"
#include "modelfile/transformer_config.h"
#include "spec/model_weights.h"

namespace muster {

/// Which unit each tensor name belongs to, in the names of the class that the config names.
///
/// Threads: immutable; the config must outlive it.
class UnitNames {
 public:
  // Beside the language model of a multimodal class. Source: transformers 5.17, modeling_gemma3.py.
  static constexpr const char* kVisionTower = "model.vision_tower";
  static constexpr const char* kProjector = "model.multi_modal_projector";

  /// Where one tensor belongs.
  struct Place {
    UnitKind kind = UnitKind::Head;
    std::uint32_t layer = 0;  // Block
    std::string module;
  };

  explicit UnitNames(const TransformerConfig& config);

  /// Where a tensor belongs. What belongs nowhere counts with the head, since it takes memory all
  /// the same.
  Place place(std::string_view name) const;

  std::string block_name(std::uint32_t layer) const;

  std::string within_base(std::string_view module) const;

  /// Whether the tensor is the output projection over the vocabulary.
  bool is_head_table(std::string_view name) const;

  bool is_in_table(std::string_view name, std::string_view table) const;

  /// Whether the name is that of a class with a head: "model.layers.0...".
  bool has_base_prefix(std::string_view name) const;

  std::string_view head_table() const;

 private:
  std::string_view without_prefix(std::string_view name) const;
  std::optional<Place> place_vision(std::string_view name) const;
  std::optional<Place> place_block(std::string_view inner) const;
  std::optional<Place> place_in(std::string_view inner, std::string_view list, std::uint32_t first,
                                std::uint32_t count) const;

  const TransformerConfig& config_;
  const FamilyTraits& traits_;
  std::string prefix_;
  std::uint32_t encoder_layers_ = 0;
};

}  // namespace muster
