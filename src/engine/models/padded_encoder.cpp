// An encoder for a GPU, which wants few large kernels. Texts are padded to powers of two and sorted
// into passes by that length; every pass has the same number of rows, so kernels see few shapes and
// the shape of a text's pass does not depend on its neighbours. The price is padding: up to half of
// a text's rows, and the empty places of the last pass. Only ids, places and lengths travel to the
// device.

#include "engine/models/padded_encoder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "engine/ops/packed_linear.h"
#include "engine/ops/relative_positions.h"

namespace muster::engine {
namespace {

// Rows of a pass: enough to fill a large GPU, little enough that one short text stays quick.
constexpr std::uint32_t kRowsPerPass = 4096;
constexpr std::uint32_t kLengthMin = 16;  // attention kernels want multiples of 16

at::Tensor activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::Gelu:
      return at::gelu(x);
    case Activation::GeluTanh:
      return at::gelu(x, "tanh");
    case Activation::Relu:
      return at::relu(x);
  }
  return x;
}

at::Tensor all_places(const EncoderWeights& weights) {
  std::vector<at::Tensor> parts{weights.padding.unsqueeze(0), weights.positions};
  if (weights.second_positions.defined()) parts.push_back(weights.second_positions);
  return at::cat(parts);
}

}  // namespace

// B texts of padded length L. Empty places of the last pass hold one padding token each: attention
// needs something to look at, and nobody reads the result.
struct PaddedEncoder::Pass {
  std::int64_t text_count = 0;      // B
  std::int64_t length = 0;          // L
  at::Tensor ids;                   // [B x L] int64, on the CPU until `compute`
  at::Tensor places;                // [B x L] int64
  at::Tensor lengths;               // [B] int64
  std::vector<std::size_t> firsts;  // where each real text begins among the batch's tokens
};

PaddedEncoder::PaddedEncoder(const EncoderSpec& encoder, const EncoderWeights& weights,
                             Precision precision, at::Device device)
    : encoder_(encoder),
      floats_(at::TensorOptions().dtype(scalar_type(precision)).device(device)),
      row_count_(std::max(kRowsPerPass, std::bit_ceil(encoder.length_max()))),
      words_(weights.words.to(floats_)),
      places_(all_places(weights).to(floats_)),
      has_segments_(weights.second_positions.defined()),
      embedding_norm_(on_device(weights.embedding_norm)) {
  if (weights.relative_bias.defined()) {
    const auto bias = weights.relative_bias.contiguous();
    const std::span values(bias.const_data_ptr<float>(), static_cast<std::size_t>(bias.numel()));
    auto table = relative_bias_by_offset(values, encoder.relative_bucket_count, encoder.head_count,
                                         encoder.length_max());
    const std::int64_t heads = encoder.head_count;
    relative_bias_ = at::empty({heads, static_cast<std::int64_t>(table.size()) / heads},
                               at::TensorOptions().dtype(at::kFloat));
    std::copy(table.begin(), table.end(), relative_bias_.mutable_data_ptr<float>());
    relative_bias_ = relative_bias_.to(floats_);
  }
  for (const auto& layer : weights.layers) {
    layers_.push_back({on_device(layer.qkv), on_device(layer.attention_out),
                       on_device(layer.attention_norm), on_device(layer.up), on_device(layer.down),
                       on_device(layer.out_norm)});
  }
}

std::size_t PaddedEncoder::tokens_per_pass() const { return 16 * std::size_t{row_count_}; }

LinearWeights PaddedEncoder::on_device(const LinearWeights& linear) const {
  return {linear.weight.to(floats_), linear.bias.to(floats_)};
}

NormWeights PaddedEncoder::on_device(const NormWeights& norm) const {
  return {norm.weight.to(floats_), norm.bias.to(floats_)};
}

at::Tensor PaddedEncoder::norm(const at::Tensor& x, const NormWeights& weights) const {
  return at::layer_norm(x, {x.size(-1)}, weights.weight, weights.bias, encoder_.layer_norm_epsilon);
}

// 0 where a text has a token and -infinity after its end, plus the relative bias.
at::Tensor PaddedEncoder::attention_mask(const Pass& pass) const {
  const auto device = floats_.device();
  const auto along = at::arange(pass.length, at::TensorOptions().dtype(at::kLong).device(device));
  const auto is_padding = along.unsqueeze(0).ge(pass.lengths.to(device).unsqueeze(1));  // [B, L]
  auto mask = at::zeros({pass.text_count, pass.length}, floats_)
                  .masked_fill(is_padding, -std::numeric_limits<double>::infinity())
                  .view({pass.text_count, 1, 1, pass.length});
  const std::int64_t heads = encoder_.head_count;
  if (relative_bias_.defined()) {
    // A padded length may pass the table's ends, but only for rows and columns that nobody reads.
    const auto middle = relative_bias_.size(1) / 2;
    const auto offsets = along.unsqueeze(0).sub(along.unsqueeze(1)).clamp(-middle, middle);
    const auto bias = relative_bias_.index_select(1, offsets.add(middle).flatten());
    mask = mask.add(bias.view({1, heads, pass.length, pass.length}));
  }
  return mask.expand({pass.text_count, heads, pass.length, pass.length});
}

at::Tensor PaddedEncoder::attend(const at::Tensor& x, const LayerWeights& layer, const Pass& pass,
                                 const at::Tensor& mask) const {
  const std::int64_t heads = encoder_.head_count;
  const auto qkv = at::linear(x, layer.qkv.weight, layer.qkv.bias)
                       .view({pass.text_count, pass.length, 3, heads, -1})
                       .permute({2, 0, 3, 1, 4});  // [3, B, heads, L, head size]
  const auto attended =
      at::scaled_dot_product_attention(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2), mask);
  const auto joined = attended.transpose(1, 2).reshape(x.sizes());  // [B x L, hidden]
  const auto out = at::linear(joined, layer.attention_out.weight, layer.attention_out.bias);
  return norm(x.add(out), layer.attention_norm);
}

at::Tensor PaddedEncoder::compute(const Pass& pass) const {
  const auto device = floats_.device();
  auto x = at::embedding(words_, pass.ids.to(device))
               .add(at::embedding(places_, pass.places.to(device)));  // [B x L, hidden]
  x = norm(x, embedding_norm_);
  const auto mask = attention_mask(pass);
  for (const auto& layer : layers_) {
    x = attend(x, layer, pass, mask);
    const auto wide = activate(at::linear(x, layer.up.weight, layer.up.bias), encoder_.activation);
    x = norm(x.add(at::linear(wide, layer.down.weight, layer.down.bias)), layer.out_norm);
  }
  return x;
}

// The pass of this padded length that has room, opened where there is none.
PaddedEncoder::Pass& PaddedEncoder::pass_for(std::uint32_t length,
                                             std::vector<Pass>& passes) const {
  const auto padded = std::max(kLengthMin, std::bit_ceil(length));
  const auto open = std::find_if(passes.rbegin(), passes.rend(), [&](const Pass& pass) {
    return std::cmp_equal(pass.length, padded) &&
           std::cmp_less(pass.firsts.size(), pass.text_count);
  });
  if (open != passes.rend()) return *open;
  const auto longs = at::TensorOptions().dtype(at::kLong);
  Pass pass;
  pass.length = padded;
  pass.text_count = row_count_ / padded;
  pass.ids = at::zeros({row_count_}, longs);
  pass.places = at::zeros({row_count_}, longs);
  pass.lengths = at::ones({pass.text_count}, longs);
  return passes.emplace_back(std::move(pass));
}

std::vector<PaddedEncoder::Pass> PaddedEncoder::arrange(const TextBatch& batch) const {
  const bool skips_padding =
      encoder_.family == EncoderFamily::Roberta || encoder_.family == EncoderFamily::Mpnet;
  std::vector<Pass> passes;
  std::size_t first = 0;
  const bool has_segments = has_segments_ && !batch.first_segments.empty();
  for (std::size_t text = 0; text < batch.lengths.size(); ++text) {
    const auto length = batch.lengths[text];
    const auto first_segment = has_segments ? batch.first_segments[text] : 0;
    auto& pass = pass_for(length, passes);
    const auto slot = static_cast<std::int64_t>(pass.firsts.size());
    auto* ids = pass.ids.mutable_data_ptr<std::int64_t>() + slot * pass.length;
    auto* places = pass.places.mutable_data_ptr<std::int64_t>() + slot * pass.length;
    std::int64_t place = 0;
    for (std::uint32_t i = 0; i < length; ++i) {
      const auto id = batch.ids[first + i];
      ids[i] = id;
      places[i] = skips_padding && id == encoder_.padding_id ? 0 : ++place;
      if (first_segment > 0 && i >= first_segment) places[i] += encoder_.length_max();
    }
    pass.lengths.mutable_data_ptr<std::int64_t>()[slot] = length;
    pass.firsts.push_back(first);
    first += length;
  }
  return passes;
}

at::Tensor PaddedEncoder::last_hidden_state(const TextBatch& batch) const {
  const auto host = at::TensorOptions().dtype(at::kFloat).device(at::kCPU);
  const auto token_count = static_cast<std::int64_t>(batch.ids.size());
  const auto state = at::empty({token_count, encoder_.hidden_size}, host);
  for (const auto& pass : arrange(batch)) {
    const auto rows = compute(pass).to(host);  // waits for the device
    for (std::size_t slot = 0; slot < pass.firsts.size(); ++slot) {
      const auto length = pass.lengths.const_data_ptr<std::int64_t>()[slot];
      state.narrow(0, static_cast<std::int64_t>(pass.firsts[slot]), length)
          .copy_(rows.narrow(0, static_cast<std::int64_t>(slot) * pass.length, length));
    }
  }
  return state;
}

}  // namespace muster::engine
