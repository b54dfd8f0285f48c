#pragma once

#include <memory>
#include <vector>

#include "engine/memory_use.h"
#include "engine/models/encoder_model.h"
#include "engine/models/encoder_weights.h"
#include "engine/ops/kernels.h"
#include "engine/ops/packed_linear.h"
#include "engine/ops/row_counts.h"

namespace muster::engine {

/// An encoder on one core: packed products by our own loop or oneDNN, attention and normalisation
/// by our own loops. In bf16 weights and products are bf16, while sums, softmax and normalisation
/// stay float32; in int8 products alone are of 8 bits, and what is between them is float32.
class CpuEncoder final : public EncoderModel {
 public:
  /// Packs the weights and, with oneDNN, runs the self-test for row counts. Call from a lane.
  CpuEncoder(const EncoderSpec& encoder, EncoderWeights weights, Precision precision);

  at::Tensor last_hidden_state(const TextBatch& batch) const override;
  std::span<const std::uint32_t> row_counts() const override { return ascending_row_counts_; }
  std::uint64_t mapped_bytes() const override;
  std::size_t tokens_per_pass() const override;

 private:
  struct Layer {
    PackedLinear qkv, attention_out, up, down;
    LayerNormShape attention_norm, out_norm;
  };
  struct Pass;  // the buffers of one call

  void allow_row_counts();
  LayerNormShape norm_shape(const NormWeights& norm) const;
  void embed(const TextBatch& batch, Pass& pass) const;
  void attend(const TextBatch& batch, const Layer& layer, Pass& pass) const;
  template <typename T>
  void attend_texts(const TextBatch& batch, const std::vector<at::Tensor>& products,
                    Pass& pass) const;
  void add_and_norm(const LayerNormShape& norm, const RowBlock& block, const at::Tensor& update,
                    Pass& pass) const;

  EncoderSpec encoder_;
  EncoderWeights weights_;
  Precision precision_;
  const Kernels& kernels_;
  std::vector<float, CountedAllocator<float>> relative_bias_;
  AttentionShape attention_;
  LayerNormShape embedding_norm_;
  std::vector<Layer> layers_;
  std::vector<std::uint32_t> row_counts_;  // descending; empty: any
  std::vector<std::uint32_t> ascending_row_counts_;
};

}  // namespace muster::engine
