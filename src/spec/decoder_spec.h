#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/rope.h"

namespace muster {

/// The decoder families that can be computed. A family fixes which tensors there are and how a
/// layer puts them together; what varies within a family stands in DecoderSpec.
enum class DecoderFamily : std::uint8_t {
  Gpt2,
  Opt,
  GptNeox,
  Llama,  // SmolLM and SmolLM2 as well; of a GGUF file also Mistral
  Mistral,
  Qwen2,
  Qwen3,
  Phi3,
  Gemma2,
  Mixtral,
};

/// By whose names and in whose order a model's tensors are stored.
///
/// A GGUF file is not a Hugging Face folder under other names. Its converter has put the rows of
/// Llama's query and key projections into pairs (`RopeStyle::Pairs`), turned GPT-2's matrices round
/// to [out, in], put GPT-NeoX's query, key and value rows one after the other, added one to Gemma's
/// norm weights, and stacked the experts of a layer into one tensor.
/// Source: conversion/*.py of llama.cpp, `modify_tensors` of each family.
enum class TensorNaming : std::uint8_t {
  HuggingFace,  // "model.layers.0.self_attn.q_proj.weight"
  Gguf,         // "blk.0.attn_q.weight"
};

enum class NormKind : std::uint8_t {
  Rms,    // x / sqrt(mean(x^2) + epsilon) * weight
  Layer,  // (x - mean) / sqrt(variance + epsilon) * weight + bias
};

/// The activation of the feed-forward part. Gated parts compute activation(gate) * up.
enum class DecoderActivation : std::uint8_t {
  Gelu,      // x * Phi(x), exact
  GeluTanh,  // the tanh approximation: "gelu_new", "gelu_pytorch_tanh", "gelu_fast"
  Relu,
  Silu,  // x * sigmoid(x)
};

/// What is computed: the dimensions and constants of one decoder.
///
/// Made by `parse_decoder_config` and `read_gguf_decoder`, which bound every size (model_limits.h),
/// so that a product of two does not overflow 64 bits, and check that `kv_head_count` divides
/// `head_count`, `experts_per_token <= expert_count` and `windows.size() == layer_count`.
struct DecoderSpec {
  DecoderFamily family = DecoderFamily::Llama;
  TensorNaming naming = TensorNaming::HuggingFace;
  std::string architecture;  // as the file states it: "llama", "LlamaForCausalLM"

  std::uint32_t vocab_size =
      0;  // rows of the embedding table, which may exceed the tokenizer's ids
  std::uint32_t hidden_size = 0;
  std::uint32_t layer_count = 0;
  std::uint32_t head_count = 0;
  std::uint32_t kv_head_count = 0;
  std::uint32_t head_size = 0;  // of queries, keys and values; head_count * head_size may differ
                                // from hidden_size
  std::uint32_t intermediate_size = 0;  // of the feed-forward part, or of one expert
  std::uint32_t length_max = 0;         // positions that the model was made for

  // Position.
  RopeSpec rope;                       // RopeStyle::None: learned positions
  std::uint32_t position_rows = 0;     // GPT-2, OPT: rows of the position table, offset included
  std::uint32_t position_offset = 0;   // OPT: token 0 has row 2
  std::vector<std::uint32_t> windows;  // one a layer: a token sees itself and window - 1 before it;
                                       // 0: all before it

  // Normalisation.
  NormKind norm = NormKind::Rms;
  double norm_epsilon = 1e-5;
  double norm_weight_offset = 0;  // added to a stored norm weight: 1 for Gemma from Hugging Face
  bool has_norm_weights = true;   // OPT: layer_norm_elementwise_affine
  bool is_norm_before = true;     // OPT: do_layer_norm_before; false: after each part's residual
  bool has_final_norm = true;     // OPT
  bool has_qk_norm = false;       // Qwen3: RMS norm of each query and key head, before RoPE
  bool has_post_norms = false;    // Gemma 2: of a part's result too, before it is added
  bool is_parallel = false;       // GPT-NeoX: x + attention(norm1(x)) + feed_forward(norm2(x))

  // Attention. Scores are query . key * attention_scale, then capped: cap * tanh(score / cap).
  double attention_scale = 0;    // 1 / sqrt(head_size) in most families
  double attention_cap = 0;      // 0: none
  bool has_layer_scale = false;  // GPT-2: scores of layer i are divided by i + 1 as well
  bool has_query_bias = false;   // of query, key and value projections
  bool has_output_bias = false;  // of the attention's output projection

  // Feed-forward.
  DecoderActivation activation = DecoderActivation::Silu;
  bool is_gated = true;
  bool has_mlp_bias = false;
  std::uint32_t expert_count = 0;       // 0: dense
  std::uint32_t experts_per_token = 0;  // weights: softmax over the chosen experts' logits

  // Table and head.
  double embedding_scale = 1;        // Gemma: sqrt(hidden_size)
  std::uint32_t embedding_size = 0;  // width of the table; differs from hidden_size in OPT-350m
  bool has_tied_head = false;        // the head is the embedding table
  double logit_cap = 0;              // Gemma 2: cap * tanh(logit / cap); 0: none

  // Tokens.
  std::optional<std::uint32_t> bos_id;
  std::vector<std::uint32_t> stop_ids;  // ascending: each of them ends a reply

  std::string dtype;  // of config.json ("bfloat16"); empty: not stated, or a GGUF file
};

/// The name of a family as messages show it: "llama", "gpt_neox".
std::string_view decoder_family_name(DecoderFamily family);

}  // namespace muster
