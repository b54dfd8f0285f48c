#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

/// What a model is for, as far as placement cares.
enum class ModelKind : std::uint8_t { Encoder, Decoder, EncoderDecoder };

/// How a layer attends, which fixes what it caches per token.
enum class AttentionKind : std::uint8_t {
  Full,           // keys and values of every token
  SlidingWindow,  // of the last `window` tokens
  Latent,         // multi-head latent attention: one latent and one rotary key per token (DeepSeek)
  Recurrent,      // a constant state per sequence
};

/// One layer's dimensions. A field that does not apply is 0.
struct LayerShape {
  AttentionKind attention = AttentionKind::Full;
  bool is_encoder = false;           // no cache; EncoderDecoder: in the encoder's stack
  bool has_cross_attention = false;  // T5's decoder: keys and values of the encoder's tokens too
  std::uint32_t head_count = 0;
  std::uint32_t kv_head_count = 0;
  std::uint32_t head_size = 0;          // of queries and keys
  std::uint32_t value_head_size = 0;    // of values; differs from head_size under Latent only
  std::uint32_t window = 0;             // SlidingWindow: tokens
  std::uint32_t latent_size = 0;        // Latent: kv_lora_rank
  std::uint32_t rope_size = 0;          // Latent: qk_rope_head_dim
  std::uint64_t state_elements = 0;     // Recurrent: elements of state per sequence
  std::uint32_t intermediate_size = 0;  // of the dense feed-forward part, or of one expert
  bool is_gated = false;                // three feed-forward matrices (SwiGLU, GeGLU), else two
  std::uint32_t expert_count = 0;       // routed experts; 0: dense
  std::uint32_t experts_per_token = 0;
  std::uint32_t shared_expert_count = 0;
};

/// What memory and time of a transformer depend on, from `config.json` or GGUF metadata.
struct ModelShape {
  std::string family;  // config.json's model_type, or GGUF's general.architecture: "llama"
  ModelKind kind = ModelKind::Decoder;
  std::uint32_t hidden_size = 0;
  std::uint32_t vocab_size = 0;
  std::uint32_t length_max = 0;    // positions the model was made for; 0: no limit stated
  std::vector<LayerShape> layers;  // an EncoderDecoder's encoder first
  bool has_tied_head = false;      // the head is the embedding table
  bool has_head = false;           // logits over the vocabulary are computed
  std::string dtype;               // of config.json ("bfloat16"); empty: not stated
};

}  // namespace muster
