#pragma once

#include <vector>

#include "engine/models/encoder_model.h"
#include "engine/models/encoder_weights.h"

namespace muster::engine {

/// An encoder in plain ATen operators on any device of torch: the one for GPUs.
///
/// Texts are padded to a power of two and computed in passes of one fixed number of rows, so every
/// kernel of a length sees the same shapes whatever else is in the batch, and a row keeps its bits.
class PaddedEncoder final : public EncoderModel {
 public:
  /// Copies the weights to the device.
  PaddedEncoder(const EncoderSpec& encoder, const EncoderWeights& weights, Precision precision,
                at::Device device);

  at::Tensor last_hidden_state(const TextBatch& batch) const override;
  std::span<const std::uint32_t> row_counts() const override { return {&row_count_, 1}; }
  std::uint64_t mapped_bytes() const override { return 0; }  // all are copied to the device
  std::size_t tokens_per_pass() const override;

 private:
  struct Pass;  // texts of one padded length

  LinearWeights on_device(const LinearWeights& linear) const;
  NormWeights on_device(const NormWeights& norm) const;
  at::Tensor norm(const at::Tensor& x, const NormWeights& weights) const;
  at::Tensor attention_mask(const Pass& pass) const;
  at::Tensor attend(const at::Tensor& x, const LayerWeights& layer, const Pass& pass,
                    const at::Tensor& mask) const;
  Pass& pass_for(std::uint32_t length, std::vector<Pass>& passes) const;
  std::vector<Pass> arrange(const TextBatch& batch) const;
  at::Tensor compute(const Pass& pass) const;

  EncoderSpec encoder_;
  at::TensorOptions floats_;  // of the precision, on the device
  std::uint32_t row_count_;
  at::Tensor words_;  // [vocab, hidden]
  /// [1 + lengths, hidden]: row 0 is the padding id's place; with segments [1 + 2 x lengths,
  /// hidden], those of segment 1 last.
  at::Tensor places_;
  bool has_segments_;
  at::Tensor relative_bias_;  // [heads, 2 x length_max - 1], undefined without one
  NormWeights embedding_norm_;
  std::vector<LayerWeights> layers_;
};

}  // namespace muster::engine
