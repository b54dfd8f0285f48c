// An encoder without padding: the texts of a batch stand one behind the other as rows, so a batch
// of mixed lengths costs no more than its tokens. Products go over blocks of rows whose counts were
// shown to give each row the same bits; attention goes text by text. The state stays float32
// between layers, whatever precision the products have. A pass allocates its buffers once and each
// layer writes into them. What idle lanes can do of it is in loops over items; with none they are
// plain loops over blocks and texts.

#include "engine/models/cpu_encoder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "engine/ops/relative_positions.h"

namespace muster::engine {
namespace {

at::Tensor zeros(std::int64_t rows, std::int64_t size, at::ScalarType type) {
  return at::zeros({rows, size}, at::TensorOptions().dtype(type));
}

template <typename T>
T* data(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

// Attention of a text is cut into pieces where lanes share it: a few for each, in proportion to its
// share of the work, so that all end at about the same time. A piece of more queries would keep a
// helper from a batch of its own for longer than most batches take; one of few would spend its time
// on copying keys, which costs as much as some thirty queries.
constexpr std::size_t kPiecesOfALane = 6;
constexpr std::size_t kQueriesMost = 1024;
constexpr std::size_t kQueriesLeast = 64;

// What normalising a value takes, in multiplications with an addition: it reads and writes memory,
// three times over.
constexpr std::uint64_t kNormWork = 16;

}  // namespace

/// hidden is the float32 state; input is what products read: hidden itself, or its bf16 copy.
struct CpuEncoder::Pass {
  LaneSeat& seat;
  std::uint64_t attention_work = 0;  // of a layer, as in SharingLimits
  std::uint64_t layer_work = 0;      // with it
  std::vector<RowBlock> blocks;
  at::Tensor hidden;            // [covered rows, hidden] float32
  at::Tensor input;             // [covered rows, hidden]
  at::Tensor attended;          // [covered rows, hidden]
  at::Tensor scratch;           // of attention, for this lane's own part of it
  std::size_t packed_text = 0;  // whose keys and values are in it: its first row, and a head
  std::optional<std::uint32_t> packed_head;

  explicit Pass(LaneSeat& own_seat) : seat(own_seat) {}

  Bfloat16* narrow() const {
    return input.scalar_type() == at::kBFloat16 ? data<Bfloat16>(input) : nullptr;
  }
};

CpuEncoder::CpuEncoder(const EncoderSpec& encoder, EncoderWeights weights, Precision precision)
    : encoder_(encoder),
      weights_(std::move(weights)),
      precision_(precision),
      kernels_(best_kernels()),
      attention_{.head_count = encoder.head_count, .head_size = encoder.head_size()},
      embedding_norm_(norm_shape(weights_.embedding_norm)) {
  if (weights_.relative_bias.defined()) {
    const auto& bias = weights_.relative_bias;
    const auto table = relative_bias_by_offset(
        {data<float>(bias), static_cast<std::size_t>(bias.numel())}, encoder.relative_bucket_count,
        encoder.head_count, encoder.length_max());
    relative_bias_.assign(table.begin(), table.end());
    attention_.relative_bias = relative_bias_.data();
    attention_.relative_bias_stride = relative_bias_.size() / encoder.head_count;
  }
  const auto pack = [&](const LinearWeights& linear) {
    return PackedLinear(linear.weight, linear.bias, precision, kRowCounts[0]);
  };
  layers_.reserve(weights_.layers.size());
  for (auto& layer : weights_.layers) {
    layers_.push_back({pack(layer.qkv), pack(layer.attention_out), pack(layer.up), pack(layer.down),
                       norm_shape(layer.attention_norm), norm_shape(layer.out_norm)});
    layer.qkv = layer.attention_out = layer.up = layer.down = {};  // packed: free what was joined
  }
  if (!layers_.front().qkv.takes_any_row_count()) allow_row_counts();
}

LayerNormShape CpuEncoder::norm_shape(const NormWeights& norm) const {
  return {data<float>(norm.weight), data<float>(norm.bias), encoder_.hidden_size,
          static_cast<float>(encoder_.layer_norm_epsilon)};
}

// All layers have the same shapes, so the first one speaks for all.
// Only counts by which every product gives a row the same bits may be used, else a vector would
// depend on its neighbours in the batch.
void CpuEncoder::allow_row_counts() {
  const Layer& layer = layers_.front();
  std::vector<RowProduct> products;
  for (const auto* linear : {&layer.qkv, &layer.attention_out, &layer.down}) {
    products.push_back(
        {linear->in_size(), [linear](const at::Tensor& x) { return linear->apply(x); }});
  }
  products.push_back({layer.up.in_size(),
                      [&](const at::Tensor& x) { return layer.up.apply(x, encoder_.activation); }});
  row_counts_ = agreeing_row_counts(products, kRowCounts, scalar_type(precision_), at::kCPU);
  ascending_row_counts_.assign(row_counts_.rbegin(), row_counts_.rend());
}

std::uint64_t CpuEncoder::mapped_bytes() const {
  std::uint64_t sum = 0;
  const auto add = [&sum](const at::Tensor& tensor) {
    // A view of the file owns nothing.
    const bool is_mapped = tensor.defined() && tensor.storage().data_ptr().get_context() == nullptr;
    if (is_mapped) sum += tensor.nbytes();
  };
  const auto add_norm = [&add](const NormWeights& norm) {
    add(norm.weight);
    add(norm.bias);
  };
  for (const auto& tensor :
       {weights_.words, weights_.positions, weights_.second_positions, weights_.relative_bias}) {
    add(tensor);
  }
  add_norm(weights_.embedding_norm);
  for (const auto& layer : weights_.layers) {
    add_norm(layer.attention_norm);
    add_norm(layer.out_norm);
  }
  return sum;
}

std::size_t CpuEncoder::tokens_per_pass() const { return kTokensPerPass; }

at::Tensor CpuEncoder::last_hidden_state(const TextBatch& batch, LaneSeat& seat) const {
  Pass pass(seat);
  lay_out(batch, pass);
  embed(batch, pass);
  for (const auto& layer : layers_) {
    attend(batch, layer, pass);
    for_blocks(pass, [&](std::size_t index, LaneSeat& block_seat) {
      finish_block(layer, pass.blocks[index], pass, block_seat);
    });
  }
  return pass.hidden;
}

// The work counts the four products of a layer, and the two of attention.
void CpuEncoder::lay_out(const TextBatch& batch, Pass& pass) const {
  const std::uint64_t hidden_size = encoder_.hidden_size;
  const auto token_count = static_cast<std::uint32_t>(batch.ids.size());
  for (const std::uint64_t length : batch.lengths) {
    pass.attention_work += 2 * length * length * hidden_size;
  }
  pass.layer_work =
      pass.attention_work +
      product_work(token_count, hidden_size, 4 * hidden_size + 2 * encoder_.intermediate_size);
  pass.seat.begin_pass(pass.layer_work * layers_.size());
  const auto lanes = static_cast<std::uint32_t>(pass.seat.lanes_now(pass.layer_work));
  pass.blocks = row_counts_.empty()
                    ? cut_rows(token_count, shared_block_rows(token_count, lanes))
                    : cover_rows(token_count, shared_row_counts(token_count, row_counts_, lanes));
  const std::int64_t rows = covered_row_count(pass.blocks);
  const auto columns = static_cast<std::int64_t>(hidden_size);
  const auto type = scalar_type(precision_);
  pass.hidden = zeros(rows, columns, at::kFloat);
  pass.input = type == at::kFloat ? pass.hidden : zeros(rows, columns, type);
  pass.attended = zeros(rows, columns, type);
  const auto longest = *std::max_element(batch.lengths.begin(), batch.lengths.end());
  pass.scratch = scratch_for(longest);
}

// Every block by one lane, side by side; or where there are fewer blocks than lanes, one after the
// other, each with a seat by which its own loops are shared out.
template <typename Each>
void CpuEncoder::for_blocks(Pass& pass, Each&& each) const {
  const std::size_t count = pass.blocks.size();
  if (row_counts_.empty() && count < pass.seat.lanes_now(pass.layer_work)) {
    for (std::size_t index = 0; index < count; ++index) each(index, pass.seat);
    return;
  }
  const SharedWork blocks{.count = count, .work = pass.layer_work};
  pass.seat.share(blocks, [&](std::size_t index, std::size_t) {
    const c10::InferenceMode inference;  // of the thread, which may be another lane's
    LaneSeat alone;
    each(index, alone);
  });
}

// What follows attention, while the block is in the cache.
void CpuEncoder::finish_block(const Layer& layer, const RowBlock& block, Pass& pass,
                              LaneSeat& seat) const {
  const auto attended = pass.attended.narrow(0, block.begin, block.count);
  add_and_norm(layer.attention_norm, block, layer.attention_out.apply(attended, {}, seat), pass,
               seat);
  const auto input = pass.input.narrow(0, block.begin, block.count);
  const auto wide = layer.up.apply(input, encoder_.activation, seat);  // [rows, intermediate]
  add_and_norm(layer.out_norm, block, layer.down.apply(wide, {}, seat), pass, seat);
}

// hidden = layer_norm(word + position); RoBERTa's families give the padding id its own position and
// do not count it. Source: modeling_roberta.py, `create_position_ids_from_input_ids`.
void CpuEncoder::embed(const TextBatch& batch, Pass& pass) const {
  const std::size_t size = encoder_.hidden_size;
  const bool skips_padding =
      encoder_.family == EncoderFamily::Roberta || encoder_.family == EncoderFamily::Mpnet;
  const float* words = data<float>(weights_.words);
  const bool has_segments = !batch.first_segments.empty() && weights_.second_positions.defined();
  float* hidden = data<float>(pass.hidden);
  Bfloat16* narrow = pass.narrow();
  std::size_t row = 0;
  for (std::size_t text = 0; text < batch.lengths.size(); ++text) {
    const auto length = batch.lengths[text];
    const auto first_segment = has_segments ? batch.first_segments[text] : 0;
    std::size_t position = 0;
    for (std::uint32_t i = 0; i < length; ++i, ++row) {
      const auto id = batch.ids[row];
      const bool is_second = first_segment > 0 && i >= first_segment;
      const float* positions =
          data<float>(is_second ? weights_.second_positions : weights_.positions);
      const bool is_padding = skips_padding && id == encoder_.padding_id;
      const float* place = is_padding ? data<float>(weights_.padding) : positions + position * size;
      if (!is_padding) ++position;
      std::memcpy(hidden + row * size, words + id * size, size * sizeof(float));
      kernels_.add_layer_norm_fp32(embedding_norm_, 1, hidden + row * size, place,
                                   narrow == nullptr ? nullptr : narrow + row * size);
    }
  }
}

void CpuEncoder::attend(const TextBatch& batch, const Layer& layer, Pass& pass) const {
  std::vector<at::Tensor> products(pass.blocks.size());  // per block [rows, 3 x hidden]
  for_blocks(pass, [&](std::size_t index, LaneSeat& seat) {
    const auto& block = pass.blocks[index];
    const auto input = pass.input.narrow(0, block.begin, block.count);
    products[index] = layer.qkv.apply(input, {}, seat);
  });
  if (precision_ == Precision::Bf16) {
    attend_texts<Bfloat16>(batch, products, pass);
  } else {
    attend_texts<float>(batch, products, pass);
  }
}

// Whole texts for one lane. Where several share them, texts in pieces, those of one head in a row,
// so that a lane which goes on with a head has its keys.
std::vector<CpuEncoder::AttentionItem> CpuEncoder::cut_attention(const TextBatch& batch,
                                                                 const Pass& pass) const {
  std::vector<AttentionItem> items;
  items.reserve(batch.lengths.size());
  const std::size_t lanes = pass.seat.lanes_now(pass.attention_work);
  std::uint64_t squares = 0;
  for (const std::uint64_t length : batch.lengths) squares += length * length;
  std::size_t begin = 0;
  for (const std::size_t length : batch.lengths) {
    const AttentionItem text{begin, length, whole_attention(attention_)};
    begin += length;
    if (lanes < 2) {
      items.push_back(text);
    } else {
      const std::uint64_t pieces = kPiecesOfALane * lanes * length * length;
      cut_text(text, (pieces + squares - 1) / squares, items);
    }
  }
  return items;
}

void CpuEncoder::cut_text(const AttentionItem& text, std::size_t piece_count,
                          std::vector<AttentionItem>& items) const {
  const std::size_t head_count = attention_.head_count;
  const auto wanted =
      std::max((piece_count + head_count - 1) / head_count, text.length / kQueriesMost);
  const auto part_count =
      std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(1, text.length / kQueriesLeast));
  // Keys that are copied for part of the queries are those of one head.
  const auto heads_at_once = part_count > 1 ? 1 : (head_count + piece_count - 1) / piece_count;
  for (std::size_t head = 0; head < head_count; head += heads_at_once) {
    auto item = text;
    item.part.head_begin = static_cast<std::uint32_t>(head);
    item.part.head_end = static_cast<std::uint32_t>(std::min(head_count, head + heads_at_once));
    item.part.query_part_count = part_count;
    for (item.part.query_part = 0; item.part.query_part < part_count; ++item.part.query_part) {
      items.push_back(item);
    }
  }
}

template <typename T>
void CpuEncoder::attend_texts(const TextBatch& batch, const std::vector<at::Tensor>& products,
                              Pass& pass) const {
  const std::size_t size = encoder_.hidden_size;
  // A text may stand across two blocks, so attention gets the address of every row.
  std::vector<const T*, CountedAllocator<const T*>> rows;
  rows.reserve(batch.ids.size());
  for (std::size_t b = 0; b < products.size(); ++b) {
    for (std::uint32_t i = 0; i < pass.blocks[b].used; ++i) {
      rows.push_back(data<T>(products[b]) + i * 3 * size);
    }
  }
  pass.packed_head.reset();  // another layer's
  const auto items = cut_attention(batch, pass);
  const SharedWork work{.count = items.size(), .work = pass.attention_work};
  pass.seat.share(work, [&](std::size_t index, std::size_t member) {
    attend_item<T>(items[index], rows, member, pass);
  });
}

at::Tensor CpuEncoder::scratch_for(std::size_t length) const {
  const auto size = kernels_.attention_scratch_size(attention_, length);
  return at::empty({static_cast<std::int64_t>(size)}, at::TensorOptions().dtype(at::kFloat));
}

// A helper keeps nothing between two items: what it would keep here while it computes a batch of
// its own, nobody has planned memory for.
template <typename T>
void CpuEncoder::attend_item(const AttentionItem& item, std::span<const T* const> rows,
                             std::size_t member, Pass& pass) const {
  const bool is_own = member == pass.seat.member();
  const at::Tensor scratch = is_own ? pass.scratch : scratch_for(item.length);
  auto part = item.part;
  if (is_own) {
    part.is_packed = pass.packed_head == part.head_begin && pass.packed_text == item.begin;
    pass.packed_text = item.begin;
    pass.packed_head = part.head_end - 1;
  }
  const auto text = rows.subspan(item.begin, item.length);
  T* out = data<T>(pass.attended) + item.begin * encoder_.hidden_size;
  if constexpr (std::is_same_v<T, float>) {
    kernels_.attend_fp32(attention_, part, text, out, data<float>(scratch));
  } else {
    kernels_.attend_bf16(attention_, part, text, out, data<float>(scratch));
  }
}

void CpuEncoder::add_and_norm(const LayerNormShape& norm, const RowBlock& block,
                              const at::Tensor& update, Pass& pass, LaneSeat& seat) const {
  const auto some_rows = [&](std::size_t first, std::size_t count) {
    const std::size_t from = first * norm.size;
    const std::size_t at = block.begin * norm.size + from;
    float* hidden = data<float>(pass.hidden) + at;
    if (precision_ == Precision::Bf16) {
      kernels_.add_layer_norm_bf16(norm, count, hidden, data<Bfloat16>(update) + from,
                                   pass.narrow() + at);
    } else {
      kernels_.add_layer_norm_fp32(norm, count, hidden, data<float>(update) + from, nullptr);
    }
  };
  const std::size_t rows = block.used;
  const std::uint64_t work = rows * norm.size * kNormWork;
  const std::size_t lanes = seat.lanes_now(work);
  const std::size_t count = lanes < 2 ? 1 : std::min(rows, 4 * lanes);
  seat.share({.count = count, .work = work}, [&](std::size_t item, std::size_t) {
    const std::size_t begin = rows * item / count;
    some_rows(begin, rows * (item + 1) / count - begin);
  });
}

}  // namespace muster::engine
