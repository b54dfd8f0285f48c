#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/memory_use.h"
#include "engine/models/encoder_model.h"
#include "engine/models/encoder_weights.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lane_team.h"
#include "engine/ops/packed_linear.h"
#include "engine/ops/row_counts.h"
#include "spec/row_blocks.h"

namespace muster::engine {

/// An encoder on the cores of a CPU: packed products by our own loop or oneDNN, attention and
/// normalisation by our own loops. In bf16 weights and products are bf16, while sums, softmax and
/// normalisation stay float32; in int8 products alone are of 8 bits, and what is between them is
/// float32.
///
/// A pass belongs to one lane. Idle lanes share it (ops/lane_team.h): blocks of rows go through
/// their products side by side where there is one for each lane; of fewer rows than that our own
/// products are shared out by panels of outputs, and oneDNN's stay with the lane; attention by
/// texts, heads and queries; normalisation by rows. Embedding and pooling stay with the lane: a
/// thousandth of the work. No sum is divided, so the bits are those of one lane.
class CpuEncoder final : public EncoderModel {
 public:
  /// Packs the weights and, with oneDNN, runs the self-test for row counts. Call from a lane.
  CpuEncoder(const EncoderSpec& encoder, EncoderWeights weights, Precision precision);

  at::Tensor last_hidden_state(const TextBatch& batch, LaneSeat& seat) const override;
  std::span<const std::uint32_t> row_counts() const override { return ascending_row_counts_; }
  std::uint64_t mapped_bytes() const override;
  std::size_t tokens_per_pass() const override;

 private:
  struct Layer {
    PackedLinear qkv, attention_out, up, down;
    LayerNormShape attention_norm, out_norm;
  };
  struct Pass;  // the buffers of one call
  struct AttentionItem {
    std::size_t begin = 0;  // the text's first row
    std::size_t length = 0;
    AttentionPart part;
  };

  void allow_row_counts();
  LayerNormShape norm_shape(const NormWeights& norm) const;
  void lay_out(const TextBatch& batch, Pass& pass) const;
  void embed(const TextBatch& batch, Pass& pass) const;
  template <typename Each>
  void for_blocks(Pass& pass, Each&& each) const;
  void finish_block(const Layer& layer, const RowBlock& block, Pass& pass, LaneSeat& seat) const;
  void attend(const TextBatch& batch, const Layer& layer, Pass& pass) const;
  std::vector<AttentionItem> cut_attention(const TextBatch& batch, const Pass& pass) const;
  void cut_text(const AttentionItem& text, std::size_t piece_count,
                std::vector<AttentionItem>& items) const;
  template <typename T>
  void attend_texts(const TextBatch& batch, const std::vector<at::Tensor>& products,
                    Pass& pass) const;
  at::Tensor scratch_for(std::size_t length) const;
  template <typename T>
  void attend_item(const AttentionItem& item, std::span<const T* const> rows, std::size_t member,
                   Pass& pass) const;
  void add_and_norm(const LayerNormShape& norm, const RowBlock& block, const at::Tensor& update,
                    Pass& pass, LaneSeat& seat) const;

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
