// An encoder without padding: the texts of a batch stand one behind the other as rows, so a batch
// of mixed lengths costs no more than its tokens. Products go over blocks of rows whose counts were
// shown to give each row the same bits; attention goes text by text. The state stays float32
// between layers, whatever precision the products have. A pass allocates its buffers once and each
// layer writes into them.

#include "engine/models/cpu_encoder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
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

}  // namespace

/// hidden is the float32 state; input is what products read: hidden itself, or its bf16 copy.
struct CpuEncoder::Pass {
  std::vector<RowBlock> blocks;
  at::Tensor hidden;    // [covered rows, hidden] float32
  at::Tensor input;     // [covered rows, hidden]
  at::Tensor attended;  // [covered rows, hidden]
  at::Tensor scratch;

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

at::Tensor CpuEncoder::last_hidden_state(const TextBatch& batch) const {
  const std::int64_t hidden_size = encoder_.hidden_size;
  Pass pass;
  const auto token_count = static_cast<std::uint32_t>(batch.ids.size());
  pass.blocks = row_counts_.empty() ? cut_rows(token_count, kProductRowsMost)
                                    : cover_rows(token_count, row_counts_);
  const std::int64_t rows = covered_row_count(pass.blocks);
  const auto type = scalar_type(precision_);
  pass.hidden = zeros(rows, hidden_size, at::kFloat);
  pass.input = type == at::kFloat ? pass.hidden : zeros(rows, hidden_size, type);
  pass.attended = zeros(rows, hidden_size, type);
  const auto longest = *std::max_element(batch.lengths.begin(), batch.lengths.end());
  pass.scratch =
      at::empty({static_cast<std::int64_t>(kernels_.attention_scratch_size(attention_, longest))},
                at::TensorOptions().dtype(at::kFloat));

  embed(batch, pass);
  for (const auto& layer : layers_) {
    attend(batch, layer, pass);
    for (const auto& block : pass.blocks) {
      const auto attended = pass.attended.narrow(0, block.begin, block.count);
      add_and_norm(layer.attention_norm, block, layer.attention_out.apply(attended), pass);
      const auto input = pass.input.narrow(0, block.begin, block.count);
      const auto wide = layer.up.apply(input, encoder_.activation);  // [rows, intermediate]
      add_and_norm(layer.out_norm, block, layer.down.apply(wide), pass);
    }
  }
  return pass.hidden;
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
  std::vector<at::Tensor> products;  // per block [rows, 3 x hidden]
  for (const auto& block : pass.blocks) {
    products.push_back(layer.qkv.apply(pass.input.narrow(0, block.begin, block.count)));
  }
  if (precision_ == Precision::Bf16) {
    attend_texts<Bfloat16>(batch, products, pass);
  } else {
    attend_texts<float>(batch, products, pass);
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
  std::size_t begin = 0;
  for (const auto length : batch.lengths) {
    const auto text = std::span<const T* const>(rows).subspan(begin, length);
    T* out = data<T>(pass.attended) + begin * size;
    float* scratch = data<float>(pass.scratch);
    if constexpr (std::is_same_v<T, float>) {
      kernels_.attend_fp32(attention_, text, out, scratch);
    } else {
      kernels_.attend_bf16(attention_, text, out, scratch);
    }
    begin += length;
  }
}

void CpuEncoder::add_and_norm(const LayerNormShape& norm, const RowBlock& block,
                              const at::Tensor& update, Pass& pass) const {
  const std::size_t at = std::size_t{block.begin} * norm.size;
  float* hidden = data<float>(pass.hidden) + at;
  if (precision_ == Precision::Bf16) {
    kernels_.add_layer_norm_bf16(norm, block.used, hidden, data<Bfloat16>(update),
                                 pass.narrow() + at);
  } else {
    kernels_.add_layer_norm_fp32(norm, block.used, hidden, data<float>(update), nullptr);
  }
}

}  // namespace muster::engine
