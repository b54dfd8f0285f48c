#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/model_shape.h"

namespace muster {

/// The architectures of transformers whose tensors are known. Source: transformers 5.17, models/.
enum class ModelFamily : std::uint8_t {
  Bert,
  Roberta,
  Mpnet,
  DistilBert,
  Gpt2,
  GptNeox,
  Opt,
  Llama,
  Mistral,
  Qwen2,
  Qwen3,
  Gemma2,
  Gemma3,
  Phi3,
  Mixtral,
  DeepseekV2,
  DeepseekV3,
  T5,
};

/// What stands on the base model in the class that `architectures` names.
enum class TaskHead : std::uint8_t {
  None,           // BertModel, LlamaModel: names without the base model's prefix
  LanguageModel,  // ForCausalLM, LMHeadModel, ForMaskedLM, ForConditionalGeneration
  Other,          // another task; known by name only
};

/// The vision tower of a multimodal model (SigLIP), as far as its tensors need it; layers of 0:
/// none.
struct VisionConfig {
  std::uint32_t layer_count = 0;
  std::uint32_t hidden_size = 0;
  std::uint32_t intermediate_size = 0;
  std::uint32_t channel_count = 0;
  std::uint32_t image_size = 0;
  std::uint32_t patch_size = 0;
  bool has_pooling_head = true;
};

/// One `config.json`, with the defaults of its family filled in: the shape, and beside it what only
/// the names and sizes of the tensors depend on. A field that does not apply is 0 or false.
struct TransformerConfig {
  ModelFamily family = ModelFamily::Llama;
  ModelShape shape;
  std::string architecture;  // "LlamaForCausalLM"
  TaskHead task = TaskHead::LanguageModel;
  bool is_nested = false;              // the dimensions are those of a text_config
  bool is_quantised = false;           // quantization_config: the tensors are not the family's own
  bool is_tied = false;                // tie_word_embeddings
  bool is_encoder_only = false;        // T5EncoderModel
  std::uint32_t position_rows = 0;     // of a learned position table, offsets included
  std::uint32_t token_type_rows = 0;   // BERT, RoBERTa
  std::uint32_t relative_buckets = 0;  // MPNet, T5
  std::uint32_t embedding_size = 0;    // OPT: word_embed_proj_dim
  std::uint32_t query_rank = 0;        // DeepSeek: q_lora_rank; 0: one full query projection
  std::uint32_t dense_intermediate = 0;  // DeepSeek: of the dense feed-forward layers
  bool has_query_bias = false;           // of query, key and value projections
  bool has_output_bias = false;          // of the attention's output projection
  bool has_mlp_bias = false;
  bool has_norm_weights = true;  // OPT: layer_norm_elementwise_affine
  bool has_final_norm = true;    // OPT before and after 350m
  VisionConfig vision;
};

/// Reads the text of a `config.json`.
///
/// Every size is bounded, so that nothing computed from it overflows or takes much memory.
/// Errors: Corrupt (not a JSON object); InvalidArgument (a missing or impossible field, by name);
/// Unsupported (another family, with the nearest known one; a kind of layer not known, by name).
/// Source: transformers 5.17, configuration_*.py of each family.
Result<TransformerConfig> parse_transformer_config(std::string_view text);

/// The names of all families, as `model_type` states them.
std::vector<std::string> known_model_types();

}  // namespace muster
