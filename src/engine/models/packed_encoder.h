#pragma once

#include <vector>

#include "engine/models/encoder_model.h"
#include "engine/models/encoder_weights.h"
#include "engine/models/packed_pass.h"
#include "engine/models/pass_budget.h"
#include "engine/models/pass_graphs.h"

namespace muster::engine {

/// An encoder in ATen operators on any device of torch: the one for GPUs.
///
/// Texts are packed without padding between them; attention goes by their offsets. A product gets
/// one of the row counts that the self-test at load found to give a row the same bits, so a text's
/// vector does not depend on its company. Pooling and normalising are done on the device: [texts,
/// dim] leaves it. Everything is in the precision asked for; sums within a kernel are float32.
///
/// Small passes are computed by graphs where torch has them. A pass that finds no memory is
/// computed again in halves; ResourceExhausted (c10's OutOfMemoryError) where one text twice does
/// not fit.
class PackedEncoder final : public EncoderModel {
 public:
  /// Copies the weights to the device, and runs the self-tests there: whether it has the kernel of
  /// attention (c10's NotImplementedError), and in which row counts rows keep their bits.
  PackedEncoder(const EncoderSpec& encoder, const EncoderWeights& weights, Precision precision,
                at::Device device);

  at::Tensor last_hidden_state(const TextBatch& batch, LaneSeat& seat) const override;
  void make_rows(const TextBatch& batch, const RowForm& form, std::span<float> rows,
                 LaneSeat& seat) const override;
  std::span<const std::uint32_t> row_counts() const override { return row_counts_; }
  std::uint64_t mapped_bytes() const override { return 0; }  // all are copied to the device
  std::uint64_t device_bytes() const override;
  std::size_t tokens_per_pass() const override;

 private:
  at::Tensor to_model(const at::Tensor& weights) const;
  LinearWeights to_model(const LinearWeights& linear) const;
  NormWeights to_model(const NormWeights& norm) const;
  at::Tensor bias_of(const EncoderWeights& weights) const;
  void try_attention() const;
  std::vector<std::uint32_t> find_row_counts() const;

  std::int64_t rows_for(std::size_t tokens) const;
  at::Tensor norm(const at::Tensor& x, const NormWeights& weights) const;
  at::Tensor attend(const at::Tensor& x, const LayerWeights& layer, const PackedPass& pass) const;
  at::Tensor feed(const at::Tensor& x, const LayerWeights& layer) const;
  at::Tensor compute(const PackedPass& pass) const;
  PackedPass arrange(const TextBatch& batch, const PassShape& shape) const;
  at::Tensor pooled(const PackedPass& pass, const RowForm& form) const;
  at::Tensor rows_on_device(const TextBatch& batch, const RowForm& form) const;
  void make_rows_of_pass(const TextBatch& batch, const RowForm& form, std::span<float> rows) const;

  EncoderSpec encoder_;
  at::TensorOptions floats_;  // of the precision, on the device
  PlaceRule places_rule_;
  at::Tensor words_;  // [vocab, hidden]
  /// [1 + lengths, hidden]: row 0 is the padding id's place; with segments [1 + 2 x lengths,
  /// hidden], those of segment 1 last.
  at::Tensor places_;
  at::Tensor bias_;  // `shared_bias`; undefined without one
  NormWeights embedding_norm_;
  std::vector<LayerWeights> layers_;
  std::vector<std::uint32_t> row_counts_;  // ascending
  mutable PassBudget budget_;
  mutable PassGraphs graphs_;
};

}  // namespace muster::engine
