// Packs what the families have found. A matrix's pages of the file are let go when it is packed.

#include "engine/decoder/decoder_weights.h"

#include <utility>

namespace muster::engine {
namespace {

struct Packing {
  DecoderPrecision precision;
  ThreadTeam& team;
};

Result<PanelMatrix> pack(const DenseTensors& tensors, const Packing& packing) {
  PanelMatrix packed;
  for (const auto& part : tensors.parts) {
    MUSTER_TRY(packed.add(part, packing.precision, packing.team));
    TensorSource::let_go(part.matrix);
  }
  return packed;
}

Result<DecoderLayer> pack(LayerTensors& tensors, const Packing& packing) {
  DecoderLayer layer;
  layer.attention_norm = std::move(tensors.attention_norm);
  layer.qkv = MUSTER_TRY(pack(tensors.qkv, packing));
  layer.query_norm = std::move(tensors.query_norm);
  layer.key_norm = std::move(tensors.key_norm);
  layer.attention_out = MUSTER_TRY(pack(tensors.attention_out, packing));
  layer.attention_post_norm = std::move(tensors.attention_post_norm);
  layer.feed_forward_norm = std::move(tensors.feed_forward_norm);
  layer.up = MUSTER_TRY(pack(tensors.up, packing));
  layer.down = MUSTER_TRY(pack(tensors.down, packing));
  // Which experts a token goes through must not hang on a rounding.
  layer.router = MUSTER_TRY(pack(tensors.router, {DecoderPrecision::Fp32, packing.team}));
  for (const auto& expert : tensors.experts) {
    auto& packed = layer.experts.emplace_back();
    packed.up = MUSTER_TRY(pack(expert.up, packing));
    packed.down = MUSTER_TRY(pack(expert.down, packing));
  }
  layer.feed_forward_post_norm = std::move(tensors.feed_forward_post_norm);
  return layer;
}

}  // namespace

std::uint64_t packed_bytes(const DecoderWeights& weights) {
  std::uint64_t sum = weights.head.bytes();
  for (const auto& layer : weights.layers) {
    sum += layer.qkv.bytes() + layer.attention_out.bytes() + layer.up.bytes() + layer.down.bytes();
    sum += layer.router.bytes();
    for (const auto& expert : layer.experts) sum += expert.up.bytes() + expert.down.bytes();
  }
  return sum;
}

Result<DecoderWeights> pack_decoder(DecoderTensors tensors, DecoderPrecision precision,
                                    ThreadTeam& team) {
  const Packing packing{precision, team};
  DecoderWeights weights;
  weights.embedding = tensors.embedding;
  weights.positions = tensors.positions;
  for (auto& layer : tensors.layers) weights.layers.push_back(MUSTER_TRY(pack(layer, packing)));
  weights.final_norm = std::move(tensors.final_norm);
  weights.head = MUSTER_TRY(pack(tensors.head, packing));
  return weights;
}

}  // namespace muster::engine
