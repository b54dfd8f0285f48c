#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster {

/// The encoder families that the engine computes. A family fixes the weight names, the kind of
/// position information and where the layer normalisations stand.
enum class EncoderFamily : std::uint8_t {
  Bert,        // absolute positions from 0, token types
  Roberta,     // absolute positions from padding_id + 1 (RoBERTa, XLM-R, CamemBERT)
  DistilBert,  // absolute positions from 0, no token types
  Mpnet,       // absolute positions from padding_id + 1, and a relative bias shared by all layers
};

/// The activation between the two feed-forward products.
enum class Activation : std::uint8_t { Gelu, GeluTanh, Relu };

/// How the token rows of a text become its vector.
enum class Pooling : std::uint8_t { Cls, Mean, Max, Last };

/// What is computed: the dimensions and constants of one encoder, from `config.json`.
struct EncoderSpec {
  EncoderFamily family = EncoderFamily::Bert;
  std::uint32_t vocab_size = 0;
  std::uint32_t hidden_size = 0;
  std::uint32_t layer_count = 0;
  std::uint32_t head_count = 0;
  std::uint32_t intermediate_size = 0;
  std::uint32_t position_count = 0;    // rows of the position table, before any offset
  std::uint32_t token_type_count = 0;  // 0: the family or the model has none
  std::uint32_t padding_id = 0;
  std::uint32_t relative_bucket_count = 0;  // Mpnet: relative_attention_num_buckets, else 0
  double layer_norm_epsilon = 1e-12;
  Activation activation = Activation::Gelu;

  /// Hidden size of one head.
  std::uint32_t head_size() const { return hidden_size / head_count; }

  /// The longest sequence the position table allows, special tokens included.
  std::uint32_t length_max() const {
    const bool is_offset = family == EncoderFamily::Roberta || family == EncoderFamily::Mpnet;
    return is_offset ? position_count - padding_id - 1 : position_count;
  }
};

/// What becomes of a raw score of a cross-encoder.
enum class ScoreActivation : std::uint8_t { Identity, Sigmoid };

/// The score as callers see it. Source: torch 2.11, torch.nn.Sigmoid: 1 / (1 + exp(-x)).
inline float activate_score(ScoreActivation activation, float score) {
  return activation == ScoreActivation::Sigmoid ? 1.0F / (1.0F + std::exp(-score)) : score;
}

/// A cross-encoder: an encoder with a classification head, which scores a pair of texts.
struct RerankSpec {
  std::uint32_t label_count = 1;  // scores of a pair
  ScoreActivation activation = ScoreActivation::Sigmoid;
  std::uint32_t length_max = 0;  // tokens of a pair with the special ones
  /// The second text is told apart by its token type. Where it is not, all tokens are of type 0.
  bool has_segments = false;
};

/// A text put before every input, by name: {"query", "query: "}.
struct NamedPrompt {
  std::string name;
  std::string text;
};

/// What turns token rows into the vector of a text, from sentence-transformers' `modules.json`.
struct SentenceSpec {
  Pooling pooling = Pooling::Mean;
  bool normalize = false;
  std::uint32_t length_max =
      0;                   // tokens with the special ones, never above EncoderSpec::length_max
  bool lowercase = false;  // do_lower_case of sentence_bert_config.json: before the tokenizer
  std::vector<NamedPrompt> prompts;
  std::optional<std::string> default_prompt;  // a name in `prompts`
};

}  // namespace muster
