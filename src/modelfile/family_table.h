#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "modelfile/transformer_config.h"

namespace muster {

/// The keys of `config.json` that hold the dimensions. transformers accepts the usual names beside
/// a family's own (`attribute_map`), and so do we.
struct FamilyKeys {
  std::string_view hidden = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view intermediate = "intermediate_size";
  std::string_view positions = "max_position_embeddings";
};

/// What the config class fills in for an absent key.
struct FamilyDefaults {
  std::uint32_t vocab = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;      // 0: as many as heads
  std::uint32_t head_size = 0;     // 0: hidden / heads
  std::uint32_t intermediate = 0;  // 0: four times hidden
  std::uint32_t positions = 0;     // 0: none
  bool is_tied = false;
};

/// Where a family keeps its parts. Module names are relative to the base model, those of `head`
/// stand beside it. Source: transformers 5.17, configuration_*.py and modeling_*.py.
struct FamilyTraits {
  ModelFamily family = ModelFamily::Llama;
  std::string_view model_type;
  std::string_view base = "model";           // the base model's name in a class with a head
  std::string_view blocks;                   // the list of blocks: "layers"
  std::string_view table;                    // the embedding table's module
  std::span<const std::string_view> before;  // computed before the first block
  std::span<const std::string_view> after;   // computed after the last
  std::span<const std::string_view> head;
  FamilyKeys keys;
  FamilyDefaults defaults;
};

const FamilyTraits& family_traits(ModelFamily family);

/// All families, in the order of ModelFamily.
std::span<const FamilyTraits> family_table();

/// BERT, RoBERTa, MPNet, DistilBERT.
bool is_encoder_family(ModelFamily family);

}  // namespace muster
