#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/decoder/cache_fetches.h"
#include "engine/decoder/decoder_model.h"
#include "engine/decoder/decoder_weights.h"
#include "engine/decoder/feed_forward_experts.h"
#include "engine/decoder/gated_product.h"
#include "engine/decoder/kv_pool.h"
#include "engine/decoder/row_forms.h"
#include "engine/ops/decoder_kernels.h"
#include "engine/ops/thread_team.h"
#include "spec/decoder_spec.h"

namespace muster::engine {

/// The forward pass of a decoder over the new tokens of many sequences at once. A token's logits
/// depend on its own sequence alone: not on the company, nor on how its tokens were divided into
/// steps, nor on the number of threads.
///
/// Threads: owned by one; it shares work out over the team.
class DecoderPass {
 public:
  /// row_count_max: tokens of a step in all; logits_max: those of them whose logits are wanted.
  DecoderPass(const DecoderSpec& spec, const DecoderWeights& weights, const DecoderKernels& kernels,
              ThreadTeam& team, std::size_t row_count_max, std::size_t logits_max);

  /// Shapes: logits [tokens that want them, vocab], in the order of the sequences and their tokens.
  void run(std::span<const StepSequence> sequences, KvPool& pool, float* logits);

 private:
  /// Some rows of one sequence that attend with the same head of keys.
  struct AttentionItem {
    std::uint32_t sequence = 0;
    std::uint32_t kv_head = 0;
    std::uint32_t begin = 0;  // of the sequence's rows x heads of the group
    std::uint32_t end = 0;
  };

  template <typename Each>
  void for_rows(std::size_t count, Each&& each);
  void place_rows(std::span<const StepSequence> sequences);
  void keep_wanted_rows(std::span<const StepSequence> sequences);
  void cut_attention(std::span<const StepSequence> sequences);
  void list_fetches(std::span<const StepSequence> sequences, const KvPool& pool);
  void embed(std::span<const StepSequence> sequences);
  void attend(std::size_t index, std::span<const StepSequence> sequences, KvPool& pool);
  void place_keys(const DecoderLayer& layer, std::size_t index, std::size_t row,
                  const StepSequence& sequence, KvPool& pool);
  void attend_item(const AttentionItem& item, std::size_t index, std::size_t member,
                   std::span<const StepSequence> sequences, const KvPool& pool);
  void feed_forward(std::size_t index);
  void norm_rows(const NormVectors& norm_vectors, RowBuffer& out);
  void add_part(const PanelMatrix& matrix, const RowBuffer& x, const NormVectors& post_norm);
  void norm(const NormVectors& norm, const float* x, float* out) const;
  void head(float* logits);

  const DecoderSpec& spec_;
  const DecoderWeights& weights_;
  ThreadTeam& team_;
  const DecoderKernels& kernels_;
  std::size_t row_count_ = 0;                 // of the step; in the last layer those with logits
  std::size_t query_size_ = 0;                // heads x head size
  std::size_t key_size_ = 0;                  // heads of keys x head size
  std::vector<std::uint32_t> sequence_rows_;  // [sequences]: how many rows
  std::vector<std::uint32_t> row_sequences_;  // [rows]: whose token it is
  std::vector<std::uint32_t> row_positions_;  // [rows]
  std::vector<AttentionItem> attention_items_;
  std::uint32_t widest_window_ = 0;  // 0: a layer has none
  CacheFetches fetches_;             // what they will read
  std::vector<float> inverse_frequencies_;
  float rotation_scale_ = 1;
  CountedArray<float> hidden_;   // [rows, hidden]: the residual stream
  CountedArray<float> part_;     // [rows, hidden]: a part's result, where a norm follows it
  CountedArray<float> qkv_;      // [rows, queries + keys + values]
  CountedArray<float> cosines_;  // [rows, pairs]
  CountedArray<float> sines_;
  RowBuffer normed_;         // [rows, hidden]: into attention and feed-forward parts
  RowBuffer second_normed_;  // the same for families whose parts run side by side
  RowBuffer attended_;       // [rows, heads x head size]
  RowBuffer gated_;          // [rows, intermediate]
  RowBuffer last_;           // [logits, hidden]
  std::optional<GatedProduct> gated_product_;
  std::optional<FeedForwardExperts> experts_;  // in place of `gated_product_` and `gated_`
  bool is_attended_by_heads_ = false;          // a head's result is whole blocks of `attended_`
  std::vector<CountedArray<float>> rooms_;     // one a thread: a normed row, or results of an item
  std::vector<CountedArray<float>> scratch_;   // of attention, one a thread; grows with the context
};

}  // namespace muster::engine
