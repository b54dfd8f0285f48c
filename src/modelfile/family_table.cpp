// The facts in which families differ, as data, so that the code which uses them has no list of
// its own. Names decide to which unit a tensor belongs, keys where a config states a dimension,
// and defaults what an absent key means. The order is that of ModelFamily, checked at compile
// time, so that a look-up is an index. Source: transformers 5.17.

#include "modelfile/family_table.h"

#include <array>
#include <cstddef>

namespace muster {
namespace {

template <std::size_t N>
using Names = std::array<std::string_view, N>;

constexpr Names<1> kEmbeddings{"embeddings"};
constexpr Names<1> kPooler{"pooler"};
constexpr Names<1> kBertHead{"cls"};
constexpr Names<1> kLmHead{"lm_head"};
constexpr Names<2> kMpnetBefore{"embeddings", "encoder.relative_attention_bias"};
constexpr Names<3> kDistilHead{"vocab_transform", "vocab_layer_norm", "vocab_projector"};
constexpr Names<2> kGpt2Before{"wte", "wpe"};
constexpr Names<1> kGpt2After{"ln_f"};
constexpr Names<2> kNeoxBefore{"embed_in", "rotary_emb"};
constexpr Names<1> kNeoxAfter{"final_layer_norm"};
// Files written before transformers 5 name the head embed_out.
constexpr Names<2> kNeoxHead{"lm_head", "embed_out"};
constexpr Names<3> kOptBefore{"decoder.embed_tokens", "decoder.embed_positions",
                              "decoder.project_in"};
constexpr Names<2> kOptAfter{"decoder.final_layer_norm", "decoder.project_out"};
constexpr Names<2> kLlamaBefore{"embed_tokens", "rotary_emb"};
constexpr Names<1> kLlamaAfter{"norm"};
constexpr Names<3> kT5Before{"shared", "encoder.embed_tokens", "decoder.embed_tokens"};
constexpr Names<2> kT5After{"decoder.final_layer_norm", "encoder.final_layer_norm"};

constexpr FamilyTraits llama_like(ModelFamily family, std::string_view model_type,
                                  FamilyDefaults defaults) {
  return {.family = family,
          .model_type = model_type,
          .blocks = "layers",
          .table = "embed_tokens",
          .before = kLlamaBefore,
          .after = kLlamaAfter,
          .head = kLmHead,
          .keys = {},
          .defaults = defaults};
}

constexpr FamilyTraits kBert{
    .family = ModelFamily::Bert,
    .model_type = "bert",
    .base = "bert",
    .blocks = "encoder.layer",
    .table = "embeddings.word_embeddings",
    .before = kEmbeddings,
    .after = kPooler,
    .head = kBertHead,
    .keys = {},
    .defaults = {
        .vocab = 30522, .heads = 12, .intermediate = 3072, .positions = 512, .is_tied = true}};

constexpr FamilyTraits kRoberta{
    .family = ModelFamily::Roberta,
    .model_type = "roberta",
    .base = "roberta",
    .blocks = "encoder.layer",
    .table = "embeddings.word_embeddings",
    .before = kEmbeddings,
    .after = kPooler,
    .head = kLmHead,
    .keys = {},
    .defaults = {
        .vocab = 50265, .heads = 12, .intermediate = 3072, .positions = 512, .is_tied = true}};

constexpr FamilyTraits kMpnet{
    .family = ModelFamily::Mpnet,
    .model_type = "mpnet",
    .base = "mpnet",
    .blocks = "encoder.layer",
    .table = "embeddings.word_embeddings",
    .before = kMpnetBefore,
    .after = kPooler,
    .head = kLmHead,
    .keys = {},
    .defaults = {
        .vocab = 30527, .heads = 12, .intermediate = 3072, .positions = 512, .is_tied = true}};

constexpr FamilyTraits kDistilBert{
    .family = ModelFamily::DistilBert,
    .model_type = "distilbert",
    .base = "distilbert",
    .blocks = "transformer.layer",
    .table = "embeddings.word_embeddings",
    .before = kEmbeddings,
    .after = {},
    .head = kDistilHead,
    .keys = {.hidden = "dim",
             .layers = "n_layers",
             .heads = "n_heads",
             .intermediate = "hidden_dim"},
    .defaults = {
        .vocab = 30522, .heads = 12, .intermediate = 3072, .positions = 512, .is_tied = true}};

constexpr FamilyTraits kGpt2{
    .family = ModelFamily::Gpt2,
    .model_type = "gpt2",
    .base = "transformer",
    .blocks = "h",
    .table = "wte",
    .before = kGpt2Before,
    .after = kGpt2After,
    .head = kLmHead,
    .keys = {.hidden = "n_embd",
             .layers = "n_layer",
             .heads = "n_head",
             .intermediate = "n_inner",
             .positions = "n_positions"},
    .defaults = {.vocab = 50257, .heads = 12, .positions = 1024, .is_tied = true}};

constexpr FamilyTraits kGptNeox{
    .family = ModelFamily::GptNeox,
    .model_type = "gpt_neox",
    .base = "gpt_neox",
    .blocks = "layers",
    .table = "embed_in",
    .before = kNeoxBefore,
    .after = kNeoxAfter,
    .head = kNeoxHead,
    .keys = {},
    .defaults = {.vocab = 50432, .heads = 64, .intermediate = 24576, .positions = 2048}};

constexpr FamilyTraits kOpt{
    .family = ModelFamily::Opt,
    .model_type = "opt",
    .blocks = "decoder.layers",
    .table = "decoder.embed_tokens",
    .before = kOptBefore,
    .after = kOptAfter,
    .head = kLmHead,
    .keys = {.intermediate = "ffn_dim"},
    .defaults = {
        .vocab = 50272, .heads = 12, .intermediate = 3072, .positions = 2048, .is_tied = true}};

constexpr FamilyTraits kT5{
    .family = ModelFamily::T5,
    .model_type = "t5",
    .base = "",
    .blocks = "encoder.block",
    .table = "shared",
    .before = kT5Before,
    .after = kT5After,
    .head = kLmHead,
    .keys = {.hidden = "d_model",
             .layers = "num_layers",
             .heads = "num_heads",
             .intermediate = "d_ff",
             .positions = "n_positions"},
    .defaults = {
        .vocab = 32128, .heads = 8, .head_size = 64, .intermediate = 2048, .is_tied = true}};

constexpr std::array<FamilyTraits, 18> kFamilies{
    kBert,
    kRoberta,
    kMpnet,
    kDistilBert,
    kGpt2,
    kGptNeox,
    kOpt,
    llama_like(ModelFamily::Llama, "llama",
               {.vocab = 32000, .heads = 32, .intermediate = 11008, .positions = 2048}),
    llama_like(ModelFamily::Mistral, "mistral",
               {.vocab = 32000,
                .heads = 32,
                .kv_heads = 8,
                .intermediate = 14336,
                .positions = 4096 * 32}),
    llama_like(
        ModelFamily::Qwen2, "qwen2",
        {.vocab = 151936, .heads = 32, .kv_heads = 32, .intermediate = 22016, .positions = 32768}),
    llama_like(ModelFamily::Qwen3, "qwen3",
               {.vocab = 151936,
                .heads = 32,
                .kv_heads = 32,
                .head_size = 128,
                .intermediate = 22016,
                .positions = 32768}),
    llama_like(ModelFamily::Gemma2, "gemma2",
               {.vocab = 256000,
                .heads = 8,
                .kv_heads = 4,
                .head_size = 256,
                .intermediate = 9216,
                .positions = 8192,
                .is_tied = true}),
    llama_like(ModelFamily::Gemma3, "gemma3",
               {.vocab = 262208,
                .heads = 8,
                .kv_heads = 4,
                .head_size = 256,
                .intermediate = 9216,
                .positions = 131072,
                .is_tied = true}),
    llama_like(ModelFamily::Phi3, "phi3",
               {.vocab = 32064, .heads = 32, .intermediate = 8192, .positions = 4096}),
    llama_like(ModelFamily::Mixtral, "mixtral",
               {.vocab = 32000,
                .heads = 32,
                .kv_heads = 8,
                .intermediate = 14336,
                .positions = 4096 * 32}),
    llama_like(ModelFamily::DeepseekV2, "deepseek_v2",
               {.vocab = 102400, .heads = 32, .intermediate = 11008, .positions = 2048}),
    llama_like(ModelFamily::DeepseekV3, "deepseek_v3",
               {.vocab = 129280, .heads = 128, .intermediate = 18432, .positions = 4096}),
    kT5,
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kFamilies.size(); ++i) {
    if (static_cast<std::size_t>(kFamilies[i].family) != i) return false;
  }
  return true;
}
static_assert(is_in_order(), "family_traits looks families up by their number");

}  // namespace

const FamilyTraits& family_traits(ModelFamily family) {
  return kFamilies[static_cast<std::size_t>(family)];
}

std::span<const FamilyTraits> family_table() { return kFamilies; }

bool is_encoder_family(ModelFamily family) { return family <= ModelFamily::DistilBert; }

}  // namespace muster
