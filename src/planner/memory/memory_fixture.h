#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "spec/model_weights.h"

namespace muster {

/// A made-up or a real model for tests, tensor by tensor.
class MemoryFixture {
 public:
  explicit MemoryFixture(ModelShape shape) { model_.shape = std::move(shape); }

  MemoryFixture& unit(UnitKind kind, std::string name, std::uint32_t layer = 0) {
    ModelUnit unit;
    unit.kind = kind;
    unit.name = std::move(name);
    unit.layer = layer;
    model_.units.push_back(std::move(unit));
    return *this;
  }

  /// A 16-bit tensor of the last unit, or of another type.
  MemoryFixture& tensor(std::string name, std::vector<std::int64_t> shape,
                        std::string dtype = "BF16", std::uint64_t bytes_a_value = 2) {
    WeightTensor tensor;
    tensor.name = std::move(name);
    tensor.is_floating = dtype == "BF16" || dtype == "F32" || dtype == "F16";
    tensor.is_blocked = dtype.starts_with("Q");
    tensor.dtype = std::move(dtype);
    tensor.bytes = bytes_a_value;
    for (const auto size : shape) tensor.bytes *= static_cast<std::uint64_t>(size);
    tensor.shape = std::move(shape);
    auto& unit = model_.units.back();
    unit.tensors.push_back(static_cast<std::uint32_t>(model_.tensors.size()));
    unit.stored_bytes += tensor.bytes;
    model_.tensors.push_back(std::move(tensor));
    return *this;
  }

  ModelDescription& model() { return model_; }

 private:
  ModelDescription model_;
};

struct DecoderSizes {
  std::int64_t layers = 2;
  std::int64_t hidden = 16;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_size = 4;
  std::int64_t wide = 24;
  std::int64_t vocab = 50;
  bool is_tied = false;
};

/// A Llama in bfloat16.
inline ModelDescription llama(const DecoderSizes& sizes) {
  const auto u32 = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  LayerShape layer;
  layer.head_count = u32(sizes.heads);
  layer.kv_head_count = u32(sizes.kv_heads);
  layer.head_size = u32(sizes.head_size);
  layer.value_head_size = u32(sizes.head_size);
  layer.intermediate_size = u32(sizes.wide);
  layer.is_gated = true;
  ModelShape shape;
  shape.family = "llama";
  shape.hidden_size = u32(sizes.hidden);
  shape.vocab_size = u32(sizes.vocab);
  shape.length_max = 131'072;
  shape.layers.assign(u32(sizes.layers), layer);
  shape.has_head = true;
  shape.has_tied_head = sizes.is_tied;
  shape.dtype = "bfloat16";
  MemoryFixture fixture(shape);
  fixture.unit(UnitKind::Embedding, "model.embed_tokens")
      .tensor("model.embed_tokens.weight", {sizes.vocab, sizes.hidden});
  const auto queries = sizes.heads * sizes.head_size;
  const auto keys = sizes.kv_heads * sizes.head_size;
  for (std::uint32_t i = 0; i < u32(sizes.layers); ++i) {
    const auto name = "model.layers." + std::to_string(i) + ".";
    fixture.unit(UnitKind::Block, "model.layers." + std::to_string(i), i)
        .tensor(name + "self_attn.q_proj.weight", {queries, sizes.hidden})
        .tensor(name + "self_attn.k_proj.weight", {keys, sizes.hidden})
        .tensor(name + "self_attn.v_proj.weight", {keys, sizes.hidden})
        .tensor(name + "self_attn.o_proj.weight", {sizes.hidden, queries})
        .tensor(name + "mlp.gate_proj.weight", {sizes.wide, sizes.hidden})
        .tensor(name + "mlp.up_proj.weight", {sizes.wide, sizes.hidden})
        .tensor(name + "mlp.down_proj.weight", {sizes.hidden, sizes.wide})
        .tensor(name + "input_layernorm.weight", {sizes.hidden})
        .tensor(name + "post_attention_layernorm.weight", {sizes.hidden});
  }
  fixture.unit(UnitKind::Head, "lm_head").tensor("model.norm.weight", {sizes.hidden});
  if (sizes.is_tied) {
    fixture.model().tied_bytes = static_cast<std::uint64_t>(sizes.vocab * sizes.hidden) * 2;
  } else {
    fixture.tensor("lm_head.weight", {sizes.vocab, sizes.hidden});
  }
  return fixture.model();
}

/// The dimensions of an encoder that the engine computes; no tensors.
inline ModelShape encoder_shape(const std::string& family, std::uint32_t layers,
                                std::uint32_t hidden, std::uint32_t heads, std::uint32_t wide) {
  LayerShape layer;
  layer.is_encoder = true;
  layer.head_count = layer.kv_head_count = heads;
  layer.head_size = layer.value_head_size = hidden / heads;
  layer.intermediate_size = wide;
  ModelShape shape;
  shape.family = family;
  shape.kind = ModelKind::Encoder;
  shape.hidden_size = hidden;
  shape.layers.assign(layers, layer);
  return shape;
}

}  // namespace muster
