// The forward pass, layer by layer: norm, one product for queries, keys and values, positions,
// attention over the paged cache, output product, norm, feed-forward products. Between two products
// stands what is done to single rows.

#include "engine/decoder/decoder_pass.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/decoder/row_sharing.h"

namespace muster::engine {
namespace {

constexpr std::uint32_t kAttentionRows = 24;  // of an item: a few strips of the kernels'

LayerNormShape shape_of(const DecoderSpec& spec, const NormVectors& norm) {
  return {norm.weight.data(), norm.bias.data(), norm.weight.size(),
          static_cast<float>(spec.norm_epsilon)};
}

RowForms forms_of(const std::vector<DecoderLayer>& layers, PanelMatrix DecoderLayer::*matrix) {
  RowForms forms;
  for (const auto& layer : layers) forms = forms | (layer.*matrix).forms();
  return forms;
}

// Puts items in turn into the shares that members of a team take them from.
template <typename Item>
void deal(std::vector<Item>& items, std::size_t share_count) {
  std::vector<Item> dealt(items.size());
  std::vector<std::size_t> next;
  for (std::size_t i = 0; i <= share_count; ++i) {
    next.push_back(share_begin(i, share_count, items.size()));
  }
  const auto ends = next;
  std::size_t share = 0;
  for (const auto& item : items) {
    while (next[share] == ends[share + 1]) share = (share + 1) % share_count;
    dealt[next[share]++] = item;
    share = (share + 1) % share_count;
  }
  items = std::move(dealt);
}

/// Of all layers; 0 where one of them has none.
std::uint32_t widest_window(const std::vector<std::uint32_t>& windows) {
  const auto [least, most] = std::minmax_element(windows.begin(), windows.end());
  return *least == 0 ? 0 : *most;
}

// With rows that are needed in float32, whatever products read of them.
RowForms and_fp32(RowForms forms) {
  forms.fp32 = true;
  return forms;
}

}  // namespace

DecoderPass::DecoderPass(const DecoderSpec& spec, const DecoderWeights& weights,
                         const DecoderKernels& kernels, ThreadTeam& team, std::size_t row_count_max,
                         std::size_t logits_max)
    : spec_(spec),
      weights_(weights),
      team_(team),
      kernels_(kernels),
      query_size_(std::size_t{spec.head_count} * spec.head_size),
      key_size_(std::size_t{spec.kv_head_count} * spec.head_size),
      widest_window_(widest_window(spec.windows)),
      fetches_(team.size()) {
  const auto& layers = weights.layers;
  const std::size_t hidden = spec.hidden_size;
  hidden_ = CountedArray<float>(row_count_max * hidden);
  if (spec.has_post_norms) part_ = CountedArray<float>(row_count_max * hidden);
  qkv_ = CountedArray<float>(row_count_max * (query_size_ + 2 * key_size_));
  auto forms = forms_of(layers, &DecoderLayer::qkv) | forms_of(layers, &DecoderLayer::up);
  if (!layers.front().experts.empty()) forms = and_fp32(forms);  // from which theirs are gathered
  normed_ = RowBuffer(row_count_max, hidden, forms);
  if (spec.is_parallel) second_normed_ = RowBuffer(row_count_max, hidden, forms);
  const auto into_out = forms_of(layers, &DecoderLayer::attention_out);
  is_attended_by_heads_ = spec.head_size % into_out.block_inputs() == 0;
  attended_ =
      RowBuffer(row_count_max, query_size_, is_attended_by_heads_ ? into_out : and_fp32(into_out));
  if (layers.front().experts.empty()) {
    gated_product_.emplace(spec, team, row_count_max);
    gated_ =
        RowBuffer(row_count_max, spec.intermediate_size, forms_of(layers, &DecoderLayer::down));
  } else {
    experts_.emplace(spec, layers, team, row_count_max);
  }
  last_ = RowBuffer(logits_max, hidden, weights.head.forms());
  const std::size_t room = std::max(hidden, std::size_t{kAttentionRows} * spec.head_size);
  for (std::size_t i = 0; i < team.size(); ++i) rooms_.emplace_back(room);
  if (spec.rope.style != RopeStyle::None) {
    // A sequence never outgrows the length for which these hold (Decoder::length_max).
    const auto frequencies = rope_frequencies(spec.rope, spec.rope.original_length);
    inverse_frequencies_ = frequencies.inverse_frequencies;
    rotation_scale_ = frequencies.attention_factor;
    cosines_ = CountedArray<float>(row_count_max * inverse_frequencies_.size());
    sines_ = CountedArray<float>(row_count_max * inverse_frequencies_.size());
  }
  scratch_.resize(team.size());
}

template <typename Each>
void DecoderPass::for_rows(std::size_t count, Each&& each) {
  share_rows(team_, count, each);
}

void DecoderPass::run(std::span<const StepSequence> sequences, KvPool& pool, float* logits) {
  place_rows(sequences);
  cut_attention(sequences);
  list_fetches(sequences, pool);
  embed(sequences);
  for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) {
    attend(layer, sequences, pool);
    if (row_count_ == 0) return;  // of the last layer nothing but keys and values was needed
    feed_forward(layer);
  }
  head(logits);
}

void DecoderPass::place_rows(std::span<const StepSequence> sequences) {
  row_sequences_.clear();
  row_positions_.clear();
  sequence_rows_.clear();
  for (std::uint32_t i = 0; i < sequences.size(); ++i) {
    sequence_rows_.push_back(static_cast<std::uint32_t>(sequences[i].tokens.size()));
    for (std::uint32_t t = 0; t < sequences[i].tokens.size(); ++t) {
      row_sequences_.push_back(i);
      row_positions_.push_back(sequences[i].position + t);
    }
  }
  row_count_ = row_sequences_.size();
}

// Rows whose logits nobody wants are done with once their keys and values of the last layer are in
// the cache: of a prompt all but the last. The others move up, in their order.
void DecoderPass::keep_wanted_rows(std::span<const StepSequence> sequences) {
  const std::size_t hidden = spec_.hidden_size;
  const std::size_t qkv = query_size_ + 2 * key_size_;
  std::size_t kept = 0;
  std::size_t end = 0;  // of the sequence's rows
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    end += sequences[i].tokens.size();
    sequence_rows_[i] = sequences[i].logit_count;
    for (std::size_t row = end - sequences[i].logit_count; row < end; ++row, ++kept) {
      if (row == kept) continue;
      std::copy_n(hidden_.get() + row * hidden, hidden, hidden_.get() + kept * hidden);
      std::copy_n(qkv_.get() + row * qkv, query_size_, qkv_.get() + kept * qkv);
      row_sequences_[kept] = row_sequences_[row];
      row_positions_[kept] = row_positions_[row];
    }
  }
  if (kept == row_count_) return;
  row_count_ = kept;
  row_sequences_.resize(kept);
  row_positions_.resize(kept);
  cut_attention(sequences);
}

// The heads that share a head of keys are one item, which reads the keys once. Items are in the
// order of their rows: a thread begins with its own, and takes the longest of the next one's when
// it has done them. In a step of few tokens the items that the threads cannot share out evenly are
// cut: 3 for 2 threads are one each, and one in two parts. Then all are dealt out in turn, so that
// each thread has as many parts.
void DecoderPass::cut_attention(std::span<const StepSequence> sequences) {
  attention_items_.clear();
  const std::uint32_t group = spec_.head_count / spec_.kv_head_count;
  const auto sequence_count = static_cast<std::size_t>(
      std::count_if(sequence_rows_.begin(), sequence_rows_.end(), [](auto n) { return n > 0; }));
  const std::size_t whole_items = sequence_count * spec_.kv_head_count;
  const bool is_scarce = row_count_ == sequence_count && whole_items < 3 * team_.size();
  const std::size_t cut_count = is_scarce ? whole_items % team_.size() : 0;
  const auto cut_rows = static_cast<std::uint32_t>((cut_count * group + team_.size() - 1) /
                                                   team_.size());  // so many for each thread
  std::size_t longest = 0;
  std::size_t whole = 0;  // items before
  for (std::uint32_t i = 0; i < sequences.size(); ++i) {
    const auto rows = sequence_rows_[i] * group;
    longest = std::max(longest, sequences[i].position + sequences[i].tokens.size());
    for (std::uint32_t begin = 0; begin < rows; begin += kAttentionRows) {
      const std::uint32_t end = std::min(begin + kAttentionRows, rows);
      for (std::uint32_t head = 0; head < spec_.kv_head_count; ++head) {
        const bool is_cut = whole++ < cut_count;
        const std::uint32_t most = is_cut ? std::min(cut_rows, kAttentionRows) : kAttentionRows;
        for (std::uint32_t from = begin; from < end; from += most) {
          attention_items_.push_back({i, head, from, std::min(from + most, end)});
        }
      }
    }
  }
  if (cut_count > 0) deal(attention_items_, team_.size());
  const std::size_t blocks = (longest + kKvBlockTokens - 1) / kKvBlockTokens;
  const std::size_t needed = kernels_.attention_rows * blocks * kKvBlockTokens;
  for (auto& scratch : scratch_) {
    if (scratch.size() < needed) scratch = CountedArray<float>(needed + needed / 2);
  }
}

// What attention will read of the cache, for the member that is to do the first rows of a sequence:
// of all layers what the one with the widest window reads. Few rows leave no time for it, as their
// products wait for the memory themselves.
void DecoderPass::list_fetches(std::span<const StepSequence> sequences, const KvPool& pool) {
  constexpr std::size_t kRowsLeast = 13;  // block_pair_product_kernel.h, kPairRowsLeast
  fetches_.clear();
  if (row_count_ < kRowsLeast) return;
  const std::size_t item_count = attention_items_.size();
  for (std::size_t member = 0; member < team_.size(); ++member) {
    const std::size_t last = share_begin(member + 1, team_.size(), item_count);
    for (std::size_t i = share_begin(member, team_.size(), item_count); i < last; ++i) {
      const auto& item = attention_items_[i];
      if (item.begin > 0) continue;  // of the sequence's other rows: they read the same
      const auto& sequence = sequences[item.sequence];
      const std::size_t end = sequence.position + 1;  // of what its first row sees
      const std::size_t begin =
          widest_window_ > 0 && end > widest_window_ ? end - widest_window_ : 0;
      for (std::size_t p = begin / kKvBlockTokens * kKvBlockTokens; p < sequence.position;
           p += kKvBlockTokens) {
        fetches_.add(member, pool.bytes_of(sequence.blocks[p / kKvBlockTokens], 0, item.kv_head));
      }
    }
  }
  fetches_.begin_layer(0);
}

// Rotations are worked out here once for all layers.
// Source: transformers 5.17, LlamaRotaryEmbedding.forward: angles in float32.
void DecoderPass::embed(std::span<const StepSequence> sequences) {
  const std::size_t hidden = spec_.hidden_size;
  const std::size_t pairs = inverse_frequencies_.size();
  for_rows(row_count_, [&](std::size_t row, std::size_t member) {
    const auto& sequence = sequences[row_sequences_[row]];
    const auto position = row_positions_[row];
    float* to = hidden_.get() + row * hidden;
    weights_.embedding.read_row(sequence.tokens[position - sequence.position], {to, hidden});
    if (spec_.embedding_scale != 1) {
      for (std::size_t i = 0; i < hidden; ++i) to[i] *= static_cast<float>(spec_.embedding_scale);
    }
    if (weights_.positions) {
      float* place = rooms_[member].get();
      weights_.positions->read_row(position + spec_.position_offset, {place, hidden});
      kernels_.add(hidden, place, to);
    }
    for (std::size_t i = 0; i < pairs; ++i) {
      const float angle = static_cast<float>(position) * inverse_frequencies_[i];
      cosines_.get()[row * pairs + i] = std::cos(angle) * rotation_scale_;
      sines_.get()[row * pairs + i] = std::sin(angle) * rotation_scale_;
    }
  });
}

void DecoderPass::norm(const NormVectors& norm, const float* x, float* out) const {
  const auto shape = shape_of(spec_, norm);
  if (spec_.norm == NormKind::Rms) {
    kernels_.rms_norm(shape, x, out);
  } else {
    kernels_.layer_norm(shape, x, out);
  }
}

// The rows of the residual stream in the forms of `out`, normed where there is such a norm.
void DecoderPass::norm_rows(const NormVectors& norm_vectors, RowBuffer& out) {
  const std::size_t hidden = spec_.hidden_size;
  for_rows(row_count_, [&](std::size_t row, std::size_t member) {
    const float* values = hidden_.get() + row * hidden;
    if (norm_vectors.is_there()) {
      norm(norm_vectors, values, rooms_[member].get());
      values = rooms_[member].get();
    }
    out.put(kernels_, {.row = row, .count = hidden}, values);
  });
}

// hidden += matrix(x), or hidden += norm(matrix(x)).
void DecoderPass::add_part(const PanelMatrix& matrix, const RowBuffer& x,
                           const NormVectors& post_norm) {
  const std::size_t hidden = spec_.hidden_size;
  if (!post_norm.is_there()) {
    matrix.multiply(kernels_, team_, x, row_count_, {hidden_.get(), hidden, true}, &fetches_);
    return;
  }
  matrix.multiply(kernels_, team_, x, row_count_, {part_.get(), hidden, false}, &fetches_);
  for_rows(row_count_, [&](std::size_t row, std::size_t) {
    float* part = part_.get() + row * hidden;
    norm(post_norm, part, part);
    kernels_.add(hidden, part, hidden_.get() + row * hidden);
  });
}

void DecoderPass::attend(std::size_t index, std::span<const StepSequence> sequences, KvPool& pool) {
  const auto& layer = weights_.layers[index];
  norm_rows(layer.attention_norm, normed_);
  layer.qkv.multiply(kernels_, team_, normed_, row_count_,
                     {qkv_.get(), query_size_ + 2 * key_size_, false}, &fetches_);
  for_rows(row_count_, [&](std::size_t row, std::size_t) {
    place_keys(layer, index, row, sequences[row_sequences_[row]], pool);
  });
  const bool is_last = index + 1 == weights_.layers.size();
  if (is_last) keep_wanted_rows(sequences);
  if (spec_.is_parallel) norm_rows(layer.feed_forward_norm, second_normed_);
  team_.share(attention_items_.size(), [&](std::size_t item, std::size_t member) {
    attend_item(attention_items_[item], index, member, sequences, pool);
  });
  if (is_last) fetches_.clear();
  fetches_.begin_layer((index + 1) * pool.layer_bytes());
  if (!is_attended_by_heads_) {
    for_rows(row_count_, [&](std::size_t row, std::size_t) {
      attended_.put(kernels_, {.row = row, .count = query_size_}, attended_.row(row));
    });
  }
  add_part(layer.attention_out, attended_, layer.attention_post_norm);
}

// One row between its product and attention: norms of heads, rotation, scale, and its keys and
// values into the cache.
void DecoderPass::place_keys(const DecoderLayer& layer, std::size_t index, std::size_t row,
                             const StepSequence& sequence, KvPool& pool) {
  const std::size_t head_size = spec_.head_size;
  float* queries = qkv_.get() + row * (query_size_ + 2 * key_size_);
  float* keys = queries + query_size_;
  if (layer.query_norm.is_there()) {
    for (std::size_t at = 0; at < query_size_; at += head_size) {
      norm(layer.query_norm, queries + at, queries + at);
    }
    for (std::size_t at = 0; at < key_size_; at += head_size) {
      norm(layer.key_norm, keys + at, keys + at);
    }
  }
  const std::size_t pairs = inverse_frequencies_.size();
  if (pairs > 0) {
    // Heads of queries and of keys stand one after the other.
    kernels_.rotate({.head_count = std::size_t{spec_.head_count} + spec_.kv_head_count,
                     .head_size = head_size,
                     .pair_count = pairs,
                     .cosines = cosines_.get() + row * pairs,
                     .sines = sines_.get() + row * pairs},
                    queries);
  }
  auto scale = static_cast<float>(spec_.attention_scale);
  if (spec_.has_layer_scale) scale /= static_cast<float>(index + 1);
  for (std::size_t i = 0; i < query_size_; ++i) queries[i] *= scale;
  const auto position = row_positions_[row];
  pool.put(sequence.blocks[position / kKvBlockTokens], position % kKvBlockTokens, index, keys,
           keys + key_size_);
}

void DecoderPass::attend_item(const AttentionItem& item, std::size_t index, std::size_t member,
                              std::span<const StepSequence> sequences, const KvPool& pool) {
  const auto& sequence = sequences[item.sequence];
  const std::size_t group = spec_.head_count / spec_.kv_head_count;
  const std::uint32_t window = spec_.windows[index];
  const auto begin_of_sequence =
      std::lower_bound(row_sequences_.begin(), row_sequences_.end(), item.sequence);
  const auto first_row = static_cast<std::size_t>(begin_of_sequence - row_sequences_.begin());
  const auto row_of = [&](std::size_t i) { return first_row + i / group; };
  const auto column_of = [&](std::size_t i) {
    return (item.kv_head * group + i % group) * spec_.head_size;
  };
  AttentionRow rows[kAttentionRows];
  std::size_t count = 0;
  float* room = rooms_[member].get();
  for (std::size_t i = item.begin; i < item.end; ++i, ++count) {
    const std::size_t row = row_of(i);
    const std::uint32_t end = row_positions_[row] + 1;
    rows[count] = {.query = qkv_.get() + row * (query_size_ + 2 * key_size_) + column_of(i),
                   .out = is_attended_by_heads_ ? room + count * spec_.head_size
                                                : attended_.row(row) + column_of(i),
                   .begin = window > 0 && end > window ? end - window : 0,
                   .end = end};
  }
  const std::span<const AttentionRow> part(rows, count);
  const AttentionExtras extras{.soft_cap = static_cast<float>(spec_.attention_cap)};
  float* scratch = scratch_[member].get();
  const auto& blocks = sequence.blocks;
  if (pool.kept() == KvCacheDtype::Fp32) {
    kernels_.attend_fp32(pool.wide_head(blocks, index, item.kv_head), part, extras, scratch);
  } else if (pool.kept() == KvCacheDtype::Fp16) {
    kernels_.attend_fp16(pool.head(blocks, index, item.kv_head), part, extras, scratch);
  } else {
    kernels_.attend_int8(pool.quant_head(blocks, index, item.kv_head), part, extras, scratch);
  }
  if (!is_attended_by_heads_) return;
  for (std::size_t i = item.begin; i < item.end; ++i, room += spec_.head_size) {
    attended_.put(kernels_, {row_of(i), column_of(i), spec_.head_size}, room);
  }
}

void DecoderPass::feed_forward(std::size_t index) {
  const auto& layer = weights_.layers[index];
  if (!spec_.is_parallel) norm_rows(layer.feed_forward_norm, normed_);
  const RowBuffer& x = spec_.is_parallel ? second_normed_ : normed_;
  if (experts_) return experts_->add(layer, x, row_count_, hidden_.get());
  gated_product_->run(layer.up, x, row_count_, gated_, &fetches_);
  add_part(layer.down, gated_, layer.feed_forward_post_norm);
}

void DecoderPass::head(float* logits) {
  norm_rows(weights_.final_norm, last_);
  const std::size_t vocab = spec_.vocab_size;
  weights_.head.multiply(kernels_, team_, last_, row_count_, {logits, vocab, false});
  if (spec_.logit_cap == 0) return;
  const auto cap = static_cast<float>(spec_.logit_cap);
  for_rows(row_count_, [&](std::size_t row, std::size_t) {
    for (float* to = logits + row * vocab; to != logits + (row + 1) * vocab; ++to) {
      *to = cap * std::tanh(*to / cap);
    }
  });
}

}  // namespace muster::engine
