#include "mixed_models.h"

#include <array>
#include <string_view>
#include <utility>

namespace muster {
namespace {

/// Source: config.json of each on Hugging Face (meta-llama/Meta-Llama-3-8B and -70B,
/// Qwen/Qwen2.5-7B and -32B, mistralai/Mistral-7B-v0.3 and Mixtral-8x7B-v0.1). None ties its head.
struct Decoder {
  std::string_view name;
  std::int64_t vocab, hidden, layers, heads, kv_heads, head_size, intermediate, experts;
  bool has_qkv_bias;
};

constexpr std::array kDecoders = {
    Decoder{"Llama-3-8B", 128256, 4096, 32, 32, 8, 128, 14336, 0, false},
    Decoder{"Llama-3-70B", 128256, 8192, 80, 64, 8, 128, 28672, 0, false},
    Decoder{"Qwen2.5-7B", 152064, 3584, 28, 28, 4, 128, 18944, 0, true},
    Decoder{"Qwen2.5-32B", 152064, 5120, 64, 40, 8, 128, 27648, 0, true},
    Decoder{"Mistral-7B", 32768, 4096, 32, 32, 8, 128, 14336, 0, false},
    Decoder{"Mixtral-8x7B", 32000, 4096, 32, 32, 8, 128, 14336, 8, false},
};

ModuleEntry linear(std::string name, std::int64_t rows, std::int64_t columns,
                   bool has_bias = false) {
  ModuleEntry entry{std::move(name), "Linear", {{"weight", {rows, columns}, "bfloat16"}}, {}, {}};
  if (has_bias) entry.parameters.push_back({"bias", {rows}, "bfloat16"});
  return entry;
}

ModuleEntry norm(std::string name, std::int64_t size) {
  return {std::move(name), "RMSNorm", {{"weight", {size}, "bfloat16"}}, {}, {}};
}

ModuleEntry feed_forward(const Decoder& model) {
  if (model.experts == 0) {
    return {"mlp",
            "MLP",
            {},
            {},
            {linear("gate_proj", model.intermediate, model.hidden),
             linear("up_proj", model.intermediate, model.hidden),
             linear("down_proj", model.hidden, model.intermediate)}};
  }
  ModuleEntry experts{"experts", "ModuleList", {}, {}, {}};
  for (std::int64_t i = 0; i < model.experts; ++i) {
    experts.children.push_back({std::to_string(i),
                                "Expert",
                                {},
                                {},
                                {linear("w1", model.intermediate, model.hidden),
                                 linear("w2", model.hidden, model.intermediate),
                                 linear("w3", model.intermediate, model.hidden)}});
  }
  return {"block_sparse_moe",
          "SparseMoeBlock",
          {},
          {},
          {linear("gate", model.experts, model.hidden), std::move(experts)}};
}

ModuleEntry module_tree(const Decoder& model) {
  const auto query = model.heads * model.head_size;
  const auto key = model.kv_heads * model.head_size;
  const bool bias = model.has_qkv_bias;
  ModuleEntry layers{"layers", "ModuleList", {}, {}, {}};
  for (std::int64_t i = 0; i < model.layers; ++i) {
    ModuleEntry attention{
        "self_attn",
        "Attention",
        {},
        {},
        {linear("q_proj", query, model.hidden, bias), linear("k_proj", key, model.hidden, bias),
         linear("v_proj", key, model.hidden, bias), linear("o_proj", model.hidden, query)}};
    layers.children.push_back(
        {std::to_string(i),
         "DecoderLayer",
         {},
         {},
         {std::move(attention), feed_forward(model), norm("input_layernorm", model.hidden),
          norm("post_attention_layernorm", model.hidden)}});
  }
  ModuleEntry embedding{
      "embed_tokens", "Embedding", {{"weight", {model.vocab, model.hidden}, "bfloat16"}}, {}, {}};
  ModuleEntry decoder{"model",
                      "Model",
                      {},
                      {},
                      {std::move(embedding), std::move(layers), norm("norm", model.hidden)}};
  return {"",
          "ForCausalLM",
          {},
          {},
          {std::move(decoder), linear("lm_head", model.vocab, model.hidden)}};
}

ModelUnit unit_of(const ModuleTree& tree, UnitKind kind, const std::vector<std::string>& modules,
                  std::vector<WeightTensor>& tensors) {
  ModelUnit unit;
  unit.kind = kind;
  unit.name = modules.back();
  unit.modules = modules;
  for (const auto& module : modules) {
    const auto top = *tree.find(module);
    for (auto node = top; node < tree.nodes[top].end; ++node) {
      if (tree.is_module(node)) continue;
      WeightTensor tensor;
      tensor.name = tree.nodes[node].name;
      tensor.dtype = "BF16";
      // Only how many elements there are counts here.
      tensor.shape = {static_cast<std::int64_t>(tree.nodes[node].element_count)};
      tensor.bytes = 2 * tree.nodes[node].element_count;
      tensor.is_floating = true;
      unit.tensors.push_back(static_cast<std::uint32_t>(tensors.size()));
      unit.stored_bytes += tensor.bytes;
      tensors.push_back(std::move(tensor));
    }
  }
  return unit;
}

LayerShape layer_of(const Decoder& model) {
  LayerShape layer;
  layer.head_count = static_cast<std::uint32_t>(model.heads);
  layer.kv_head_count = static_cast<std::uint32_t>(model.kv_heads);
  layer.head_size = static_cast<std::uint32_t>(model.head_size);
  layer.value_head_size = layer.head_size;
  layer.intermediate_size = static_cast<std::uint32_t>(model.intermediate);
  layer.is_gated = true;
  layer.expert_count = static_cast<std::uint32_t>(model.experts);
  layer.experts_per_token = model.experts > 0 ? 2 : 0;
  return layer;
}

ModelDescription description_of(const Decoder& model, const ModuleTree& tree) {
  ModelDescription description;
  description.name = model.name;
  description.source_file = "config.json";
  auto& shape = description.shape;
  shape.family = model.experts > 0 ? "mixtral" : "llama";
  shape.hidden_size = static_cast<std::uint32_t>(model.hidden);
  shape.vocab_size = static_cast<std::uint32_t>(model.vocab);
  shape.length_max = 8192;
  shape.has_head = true;
  shape.dtype = "bfloat16";
  shape.layers.assign(static_cast<std::size_t>(model.layers), layer_of(model));
  auto& tensors = description.tensors;
  description.units.push_back(unit_of(tree, UnitKind::Embedding, {"model.embed_tokens"}, tensors));
  for (std::uint32_t i = 0; i < shape.layers.size(); ++i) {
    const auto name = "model.layers." + std::to_string(i);
    description.units.push_back(unit_of(tree, UnitKind::Block, {name}, tensors));
    description.units.back().layer = i;
  }
  description.units.push_back(unit_of(tree, UnitKind::Head, {"model.norm", "lm_head"}, tensors));
  return description;
}

Result<StudyModel> prepared(const Decoder& decoder) {
  StudyModel model;
  model.name = decoder.name;
  model.tree = MUSTER_TRY(flatten_modules(module_tree(decoder), {}));
  model.bits = MUSTER_TRY(module_bits(model.tree, {}));
  model.description = description_of(decoder, model.tree);
  for (const auto& unit : model.description.units) model.chain.push_back(unit.stored_bytes);
  return model;
}

}  // namespace

Result<std::vector<StudyModel>> study_models() {
  std::vector<StudyModel> models;
  for (const auto& decoder : kDecoders) models.push_back(MUSTER_TRY(prepared(decoder)));
  return models;
}

}  // namespace muster
