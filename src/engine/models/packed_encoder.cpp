// An encoder for a GPU, which wants few large kernels and little traffic with the host. Ids, places
// and offsets travel in one copy from pinned memory, the pooled rows in one back; nothing else
// crosses. The copies are not waited for: the only wait is for the rows, and while a lane waits
// another one feeds the device. Weights are on the device once, read by all lanes.

#include "engine/models/packed_encoder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/gpu_device.h"
#include "engine/guard.h"
#include "engine/kernel_trial.h"
#include "engine/models/batch_cut.h"
#include "engine/ops/packed_linear.h"
#include "engine/ops/relative_positions.h"
#include "engine/ops/row_counts.h"
#include "engine/ops/segment_pooling.h"
#include "engine/ops/varlen_attention.h"
#include "spec/row_blocks.h"

namespace muster::engine {
namespace {

// In place: the wide rows are the largest tensor of a pass.
void activate(at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::Gelu:
      at::gelu_(x);
      return;
    case Activation::GeluTanh:
      at::gelu_(x, "tanh");
      return;
    case Activation::Relu:
      at::relu_(x);
      return;
  }
}

at::Tensor all_places(const EncoderWeights& weights) {
  std::vector<at::Tensor> parts{weights.padding.unsqueeze(0), weights.positions};
  if (weights.second_positions.defined()) parts.push_back(weights.second_positions);
  return at::cat(parts);
}

PlaceRule place_rule(const EncoderSpec& encoder, const EncoderWeights& weights) {
  return {.skips_padding =
              encoder.family == EncoderFamily::Roberta || encoder.family == EncoderFamily::Mpnet,
          .padding_id = encoder.padding_id,
          .second_segment = weights.second_positions.defined() ? encoder.length_max() : 0};
}

std::size_t longest_pass(const EncoderSpec& encoder) {
  return std::max<std::size_t>(kGpuRowCounts[0], encoder.length_max());
}

}  // namespace

PackedEncoder::PackedEncoder(const EncoderSpec& encoder, const EncoderWeights& weights,
                             Precision precision, at::Device device)
    : encoder_(encoder),
      floats_(at::TensorOptions().dtype(scalar_type(precision)).device(device)),
      places_rule_(place_rule(encoder, weights)),
      words_(to_model(weights.words)),
      places_(to_model(all_places(weights))),
      embedding_norm_(to_model(weights.embedding_norm)),
      budget_(longest_pass(encoder)) {
  if (weights.relative_bias.defined()) bias_ = bias_of(weights);
  for (const auto& layer : weights.layers) {
    layers_.push_back({to_model(layer.qkv), to_model(layer.attention_out),
                       to_model(layer.attention_norm), to_model(layer.up), to_model(layer.down),
                       to_model(layer.out_norm)});
  }
  try_attention();
  row_counts_ = find_row_counts();
  if (!device.is_cpu()) {
    wait_for_stream(device);        // lanes have streams of their own
    release_cached_memory(device);  // the self-test's blocks are of a stream that no lane uses
  }
}

std::uint64_t PackedEncoder::device_bytes() const {
  std::uint64_t sum = words_.nbytes() + places_.nbytes();
  if (bias_.defined()) sum += bias_.storage().nbytes();
  const auto add_norm = [&sum](const NormWeights& norm) {
    sum += norm.weight.nbytes() + norm.bias.nbytes();
  };
  add_norm(embedding_norm_);
  for (const auto& layer : layers_) {
    for (const auto* linear : {&layer.qkv, &layer.attention_out, &layer.up, &layer.down}) {
      sum += linear->weight.nbytes() + linear->bias.nbytes();
    }
    add_norm(layer.attention_norm);
    add_norm(layer.out_norm);
  }
  return sum;
}

std::size_t PackedEncoder::tokens_per_pass() const {
  return std::min<std::size_t>(kGpuRowCounts[0], budget_.now());
}

at::Tensor PackedEncoder::to_model(const at::Tensor& weights) const { return weights.to(floats_); }

LinearWeights PackedEncoder::to_model(const LinearWeights& linear) const {
  return {to_model(linear.weight), to_model(linear.bias)};
}

NormWeights PackedEncoder::to_model(const NormWeights& norm) const {
  return {to_model(norm.weight), to_model(norm.bias)};
}

at::Tensor PackedEncoder::bias_of(const EncoderWeights& weights) const {
  const auto bias = weights.relative_bias.contiguous();
  const std::span values(bias.const_data_ptr<float>(), static_cast<std::size_t>(bias.numel()));
  const auto table = relative_bias_by_offset(values, encoder_.relative_bucket_count,
                                             encoder_.head_count, encoder_.length_max());
  const std::int64_t heads = encoder_.head_count;
  const auto by_offset = at::empty({heads, static_cast<std::int64_t>(table.size()) / heads},
                                   at::TensorOptions().dtype(at::kFloat));
  std::copy(table.begin(), table.end(), by_offset.mutable_data_ptr<float>());
  return shared_bias(to_model(by_offset), encoder_.length_max(),
                     static_cast<std::int64_t>(longest_pass(encoder_)));
}

void PackedEncoder::try_attention() const {
  constexpr std::int64_t kRows = 8;
  const std::int64_t heads = encoder_.head_count;
  const auto offsets =
      at::arange(0, 2 * kRows, kRows, at::TensorOptions().dtype(at::kInt).device(floats_.device()));
  const auto qkv = at::zeros({kRows, 3, heads, encoder_.head_size()}, floats_);
  try_kernel(floats_.device(), "attention", [&] { attend_texts(qkv, offsets, kRows, bias_); });
}

// All layers have the same shapes, so the first one speaks for all.
std::vector<std::uint32_t> PackedEncoder::find_row_counts() const {
  const auto& layer = layers_.front();
  std::vector<RowProduct> products;
  for (const auto* linear : {&layer.qkv, &layer.attention_out, &layer.up, &layer.down}) {
    products.push_back({linear->weight.size(1), [linear](const at::Tensor& x) {
                          return at::linear(x, linear->weight, linear->bias);
                        }});
  }
  auto counts = agreeing_row_counts(products, kGpuRowCounts,
                                    c10::typeMetaToScalarType(floats_.dtype()), floats_.device());
  return {counts.rbegin(), counts.rend()};
}

// A text that is longer than the largest count has a pass for itself, whose rows depend on nothing
// else.
std::int64_t PackedEncoder::rows_for(std::size_t tokens) const {
  const auto found = std::lower_bound(row_counts_.begin(), row_counts_.end(), tokens);
  return found != row_counts_.end() ? *found : static_cast<std::int64_t>(tokens);
}

at::Tensor PackedEncoder::norm(const at::Tensor& x, const NormWeights& weights) const {
  return at::layer_norm(x, {x.size(-1)}, weights.weight, weights.bias, encoder_.layer_norm_epsilon);
}

at::Tensor PackedEncoder::attend(const at::Tensor& x, const LayerWeights& layer,
                                 const PackedPass& pass) const {
  const auto attended =
      attend_texts(at::linear(x, layer.qkv.weight, layer.qkv.bias)
                       .view({x.size(0), 3, std::int64_t{encoder_.head_count}, -1}),
                   pass.offsets, pass.longest, bias_);
  auto sum = at::linear(attended, layer.attention_out.weight, layer.attention_out.bias);
  return norm(sum.add_(x), layer.attention_norm);
}

at::Tensor PackedEncoder::feed(const at::Tensor& x, const LayerWeights& layer) const {
  auto wide = at::linear(x, layer.up.weight, layer.up.bias);
  activate(wide, encoder_.activation);
  auto sum = at::linear(wide, layer.down.weight, layer.down.bias);
  wide.reset();  // the normalisation finds its memory there
  return norm(sum.add_(x), layer.out_norm);
}

// Shapes: [rows, hidden], those of padding last.
at::Tensor PackedEncoder::compute(const PackedPass& pass) const {
  auto x = at::embedding(words_, pass.ids).add_(at::embedding(places_, pass.places));
  x = norm(x, embedding_norm_);
  for (const auto& layer : layers_) {
    x = attend(x, layer, pass);
    x = feed(x, layer);
  }
  return x;
}

PackedPass PackedEncoder::arrange(const TextBatch& batch, const PassShape& shape) const {
  return arrange_pass(batch, places_rule_, shape, !floats_.device().is_cpu());
}

at::Tensor PackedEncoder::last_hidden_state(const TextBatch& batch, LaneSeat& /*seat*/) const {
  const auto shape = least_shape(batch, rows_for(batch.ids.size()), longest_text(batch));
  const auto x = compute(to_device(arrange(batch, shape), floats_.device()));
  const auto host = at::TensorOptions().dtype(at::kFloat).device(at::kCPU);
  return x.narrow(0, 0, static_cast<std::int64_t>(batch.ids.size())).to(host);
}

// Of every text slot, those of padding too.
at::Tensor PackedEncoder::pooled(const PackedPass& pass, const RowForm& form) const {
  if (form.head != nullptr) return pool_texts(Pooling::Cls, compute(pass), pass.offsets);
  const auto rows = pool_texts(form.pooling, compute(pass), pass.offsets);
  return form.normalize ? normalize_rows(rows) : rows;
}

at::Tensor PackedEncoder::rows_on_device(const TextBatch& batch, const RowForm& form) const {
  const auto device = floats_.device();
  const auto row_count = rows_for(batch.ids.size());
  const auto work = [&](const PackedPass& pass) { return pooled(pass, form); };
  // On the stand-in every launch is to be checked by itself, so it has none.
  const bool has_graphs = device.is_cuda() && CudaGraph::is_available();
  if (const auto shape = PassGraphs::shape_for(batch, row_count); has_graphs && shape) {
    return graphs_.run(arrange(batch, *shape), *shape, device, work);
  }
  return work(
      to_device(arrange(batch, least_shape(batch, row_count, longest_text(batch))), device));
}

// Where a lane captures a graph, torch's allocator gives none of the blocks that it keeps back
// before it tells another lane that there is no memory; so a text that is alone is tried twice.
// Source: torch 2.11, CUDACachingAllocator.cpp, malloc (`captures_underway`).
void PackedEncoder::make_rows(const TextBatch& batch, const RowForm& form, std::span<float> rows,
                              LaneSeat& /*seat*/) const {
  const auto width = rows.size() / batch.lengths.size();
  bool is_second_try = false;
  for (auto left = batch; !left.lengths.empty();) {
    const auto [part, rest] = cut_batch(left, budget_.now());
    const auto part_size = part.lengths.size() * width;
    try {
      make_rows_of_pass(part, form, rows.first(part_size));
      budget_.on_pass();
      rows = rows.subspan(part_size);
      left = rest;
      is_second_try = false;
    } catch (const c10::Error& error) {
      if (!is_out_of_memory(error)) throw;
      release_cached_memory(floats_.device());  // blocks kept for passes of other sizes
      if (part.lengths.size() > 1) {
        budget_.on_out_of_memory(part.ids.size());
      } else if (std::exchange(is_second_try, true)) {
        throw;
      }
    }
  }
}

void PackedEncoder::make_rows_of_pass(const TextBatch& batch, const RowForm& form,
                                      std::span<float> rows) const {
  const auto text_count = static_cast<std::int64_t>(batch.lengths.size());
  const auto on_host = to_host(rows_on_device(batch, form).narrow(0, 0, text_count));
  const auto* values = on_host.const_data_ptr<float>();
  if (form.head == nullptr) {
    std::memcpy(rows.data(), values, rows.size_bytes());
    return;
  }
  const std::size_t hidden_size = encoder_.hidden_size;
  const auto width = rows.size() / batch.lengths.size();
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    form.head->score({values + i * hidden_size, hidden_size}, rows.subspan(i * width, width));
  }
}

}  // namespace muster::engine
