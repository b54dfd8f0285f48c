// A decoder for a GPU, which wants few large kernels and little traffic with the host. Sequences
// are packed; a layer gathers the keys and values that they see from the cache.

#include "engine/decoder/device_decoder.h"

#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/decoder/kv_pool.h"
#include "engine/gpu_device.h"
#include "engine/kernel_trial.h"
#include "engine/ops/decoder_kernels.h"
#include "engine/ops/row_counts.h"
#include "spec/gpu_decoder_limits.h"
#include "spec/gpu_decoder_memory.h"
#include "spec/rope.h"
#include "spec/row_blocks.h"

namespace muster::engine {
namespace {

Status check_computed(const DecoderOptions& options) {
  if (options.precision == DecoderPrecision::Own) {
    return Error{ErrorKind::Unsupported,
                 "a file's own bits are multiplied on CPUs only: on a GPU use bf16 or fp32"};
  }
  if (options.precision == DecoderPrecision::Int8) {
    return Error{ErrorKind::Unsupported,
                 "blocks of int8 are multiplied on CPUs only: on a GPU use bf16 or fp32"};
  }
  if (options.kv_cache_dtype != KvCacheDtype::Auto) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("keys and values are kept in {} on CPUs only: on a GPU use "
                             "kv_cache_dtype auto",
                             kv_cache_dtype_name(options.kv_cache_dtype))};
  }
  if (auto lacking = not_computed_on_gpu(options.spec)) {
    return Error{ErrorKind::Unsupported, *std::move(lacking)};
  }
  const auto rows_most = std::max(options.step_tokens_max, options.logits_max);
  if (rows_most > kGpuRowCounts[0]) {
    return Error{ErrorKind::InvalidArgument, fmt::format("a step on a GPU has at most {} rows: {}",
                                                         kGpuRowCounts[0], rows_most)};
  }
  return Done{};
}

/// The row counts that may be tried for at most so many rows, descending.
std::vector<std::uint32_t> candidates_for(std::size_t most) {
  std::vector<std::uint32_t> counts(std::begin(kGpuRowCounts), std::end(kGpuRowCounts));
  // The smallest that holds them is the largest.
  while (counts.size() > 1 && counts[1] >= most) counts.erase(counts.begin());
  return counts;
}

std::int64_t rows_in(const std::vector<std::uint32_t>& counts, std::size_t rows) {
  return *std::lower_bound(counts.begin(), counts.end(), rows);
}

// In place: the wide rows are the largest tensor of a step.
void activate(at::Tensor x, DecoderActivation activation) {
  switch (activation) {
    case DecoderActivation::Gelu:
      at::gelu_(x);
      return;
    case DecoderActivation::GeluTanh:
      at::gelu_(x, "tanh");
      return;
    case DecoderActivation::Relu:
      at::relu_(x);
      return;
    case DecoderActivation::Silu:
      at::silu_(x);
      return;
  }
}

}  // namespace

Result<std::unique_ptr<DecoderModel>> DeviceDecoder::load(const DecoderOptions& options,
                                                          const TensorSource& source) {
  MUSTER_TRY(check_computed(options));
  const auto tensors = MUSTER_TRY(find_decoder_tensors({options.spec, source}));
  const c10::InferenceMode inference;
  const auto device = torch_device(options.device);
  std::unique_ptr<DeviceDecoder> decoder(new DeviceDecoder(options, tensors, device));
  return std::unique_ptr<DecoderModel>(std::move(decoder));
}

DeviceDecoder::DeviceDecoder(const DecoderOptions& options, const DecoderTensors& tensors,
                             at::Device device)
    : spec_(options.spec),
      type_(options.precision == DecoderPrecision::Fp32 ? at::kFloat : at::kBFloat16),
      floats_(at::TensorOptions().dtype(type_).device(device)),
      weights_(copy_to_device(tensors, options.spec, floats_)),
      spare_slot_(static_cast<std::uint32_t>(options.block_count * kKvBlockTokens)) {
  make_rotations();
  try_attention();
  find_row_counts(options);
  wait_for_stream(device);
  release_cached_memory(device);  // what the self-tests had
  cache_ = at::empty(
      {spec_.layer_count, 2, std::int64_t{spare_slot_} + 1, spec_.kv_head_count, spec_.head_size},
      floats_);
}

void DeviceDecoder::share(std::size_t count, const std::function<void(std::size_t)>& item) {
  for (std::size_t i = 0; i < count; ++i) item(i);
}

std::uint64_t DeviceDecoder::weights_bytes() const {
  return weights_.bytes() + (rotations_.defined() ? rotations_.nbytes() : 0);
}

std::uint64_t DeviceDecoder::block_bytes() const {
  // fp16 takes as much as bf16.
  return kv_block_bytes(spec_, type_ == at::kFloat ? KvCacheDtype::Fp32 : KvCacheDtype::Fp16);
}

// Of every position that a sequence may have, worked out on the host as for a CPU.
// Source: transformers 5.17, LlamaRotaryEmbedding.forward: angles in float32.
void DeviceDecoder::make_rotations() {
  if (spec_.rope.style == RopeStyle::None) return;
  const auto frequencies = rope_frequencies(spec_.rope, spec_.rope.original_length);
  const auto& inverse = frequencies.inverse_frequencies;
  const auto scale = frequencies.attention_factor;
  const auto length = static_cast<std::int64_t>(decoder_length_max(spec_));
  const auto pairs = static_cast<std::int64_t>(inverse.size());
  auto host = at::empty({length, 2 * pairs}, at::TensorOptions().dtype(at::kFloat));
  auto* to = host.mutable_data_ptr<float>();
  for (std::int64_t position = 0; position < length; ++position, to += 2 * pairs) {
    for (std::size_t i = 0; i < inverse.size(); ++i) {
      const float angle = static_cast<float>(position) * inverse[i];
      to[i] = std::cos(angle) * scale;
      to[inverse.size() + i] = std::sin(angle) * scale;
    }
  }
  rotations_ = host.to(floats_.dtype(at::kFloat));
}

// One that no sequence outgrows is none, whatever a step has.
std::int64_t DeviceDecoder::window_of(std::size_t layer) const {
  const std::int64_t window = spec_.windows[layer];
  return static_cast<std::size_t>(window) < decoder_length_max(spec_) ? window : 0;
}

void DeviceDecoder::try_attention() {
  const auto numbers = floats_.dtype(at::kInt);
  const auto offsets = at::zeros({2}, numbers);
  offsets.narrow(0, 1, 1).fill_(1);
  const auto query = at::zeros({1, spec_.head_count, spec_.head_size}, floats_);
  const auto keys = at::zeros({1, spec_.kv_head_count, spec_.head_size}, floats_);
  const AttentionSpans spans{offsets, offsets, 1, 1};
  try_kernel(floats_.device(), "attention", [&] {
    attend_cached(query, keys, keys, spans, {.scale = 1, .window = window_of(0)});
  });
}

// All layers have the same shapes, so the first one speaks for all.
void DeviceDecoder::find_row_counts(const DecoderOptions& options) {
  const auto found = [&](std::span<const RowProduct> products, std::size_t most) {
    const auto counts =
        agreeing_row_counts(products, candidates_for(most), type_, floats_.device());
    return std::vector<std::uint32_t>(counts.rbegin(), counts.rend());
  };
  const auto& layer = weights_.layers.front();
  std::vector<RowProduct> products;
  for (const auto* linear : {&layer.qkv, &layer.attention_out, &layer.up, &layer.down}) {
    products.push_back({linear->weight.size(1), [linear](const at::Tensor& x) {
                          return at::linear(x, linear->weight, linear->bias);
                        }});
  }
  row_counts_ = found(products, options.step_tokens_max);
  const RowProduct head{spec_.hidden_size, [this](const at::Tensor& x) { return head_of(x); }};
  logit_row_counts_ = found({&head, 1}, options.logits_max);
}

StepRows DeviceDecoder::rows_for(std::span<const StepSequence> sequences) const {
  std::size_t tokens = 0;
  std::size_t wanted = 0;
  for (const auto& sequence : sequences) {
    tokens += sequence.tokens.size();
    wanted += sequence.logit_count;
  }
  return {rows_in(row_counts_, tokens), wanted == 0 ? 0 : rows_in(logit_row_counts_, wanted)};
}

DeviceDecoder::Numbers DeviceDecoder::to_device(const StepLayout& layout) const {
  const auto& numbers = layout.numbers();
  auto host = at::empty({static_cast<std::int64_t>(numbers.size())},
                        at::TensorOptions().dtype(at::kInt).pinned_memory(true));
  std::copy(numbers.begin(), numbers.end(), host.mutable_data_ptr<std::int32_t>());
  const auto all = host.to(floats_.device(), at::kInt, /*non_blocking=*/true);
  const auto list = [&all](StepLayout::List of) { return all.narrow(0, of.begin, of.size); };
  Numbers found{.ids = list(layout.ids()),
                .positions = list(layout.positions()),
                .logit_rows = list(layout.logit_rows()),
                .slots = list(layout.slots()).to(at::kLong),
                .groups = {},
                .cosines = {},
                .sines = {}};
  for (const auto& group : layout.groups()) {
    found.groups.push_back({.first_row = group.first_row,
                            .row_count = group.row_count,
                            .key_slots = list(group.key_slots),
                            .spans = {list(group.query_offsets), list(group.key_offsets),
                                      group.longest_query, group.longest_key}});
  }
  if (rotations_.defined()) {
    const auto pairs = rotations_.size(1) / 2;
    const auto rows = rotations_.index_select(0, found.positions).unsqueeze(1);
    found.cosines = rows.narrow(2, 0, pairs);
    found.sines = rows.narrow(2, pairs, pairs);
  }
  return found;
}

void DeviceDecoder::run(std::span<const StepSequence> sequences, std::span<float> logits) {
  const c10::InferenceMode inference;
  const auto rows = rows_for(sequences);
  const auto numbers = to_device(StepLayout(sequences, rows, spare_slot_, kGatheredKeysMost));
  auto hidden = embed(numbers);
  for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) {
    compute_layer(layer, hidden, numbers);
  }
  if (rows.logits == 0) {
    wait_for_stream(floats_.device());  // the step's numbers go with this call
    return;
  }
  const auto wanted = static_cast<std::int64_t>(logits.size() / spec_.vocab_size);
  const auto on_host = to_host(logits_of(hidden, numbers).narrow(0, 0, wanted));
  std::memcpy(logits.data(), on_host.const_data_ptr<float>(), logits.size_bytes());
}

at::Tensor DeviceDecoder::embed(const Numbers& numbers) const {
  auto hidden = at::embedding(weights_.embedding, numbers.ids).to(at::kFloat);
  if (spec_.embedding_scale != 1) hidden.mul_(spec_.embedding_scale);
  if (weights_.positions.defined()) {
    hidden.add_(at::embedding(weights_.positions,
                              numbers.positions.add(std::int64_t{spec_.position_offset})));
  }
  return hidden;
}

// Shapes: rows [rows, size] float32.
at::Tensor DeviceDecoder::normed(const at::Tensor& rows, const DeviceNorm& norm) const {
  const std::array size{rows.size(1)};
  return spec_.norm == NormKind::Rms
             ? std::get<0>(at::_fused_rms_norm(rows, size, norm.weight, spec_.norm_epsilon))
             : at::layer_norm(rows, size, norm.weight, norm.bias, spec_.norm_epsilon);
}

at::Tensor DeviceDecoder::into_product(const at::Tensor& rows, const DeviceNorm& norm) const {
  return (norm.is_there() ? normed(rows, norm) : rows).to(type_);
}

// hidden += x W^T + b, or hidden += norm(x W^T + b).
void DeviceDecoder::add_part(at::Tensor& hidden, const at::Tensor& x, const DeviceLinear& linear,
                             const DeviceNorm& post_norm) const {
  const auto part = at::linear(x, linear.weight, linear.bias);
  hidden.add_(post_norm.is_there() ? normed(part.to(at::kFloat), post_norm) : part);
}

void DeviceDecoder::compute_layer(std::size_t index, at::Tensor& hidden, const Numbers& numbers) {
  const auto& layer = weights_.layers[index];
  at::Tensor beside;  // what the feed-forward part reads, where the parts run side by side
  if (spec_.is_parallel) beside = into_product(hidden, layer.feed_forward_norm);
  add_part(hidden, attend(index, into_product(hidden, layer.attention_norm), numbers),
           layer.attention_out, layer.attention_post_norm);
  if (!spec_.is_parallel) beside = into_product(hidden, layer.feed_forward_norm);
  add_part(hidden, feed_forward(layer, beside), layer.down, layer.feed_forward_post_norm);
}

// Shapes: x [rows, hidden]; the result is [rows, heads x head size].
at::Tensor DeviceDecoder::attend(std::size_t index, const at::Tensor& x, const Numbers& numbers) {
  const auto& layer = weights_.layers[index];
  const std::int64_t heads = spec_.head_count;
  const std::int64_t kv_heads = spec_.kv_head_count;
  const auto all = at::linear(x, layer.qkv.weight, layer.qkv.bias)
                       .view({x.size(0), heads + 2 * kv_heads, spec_.head_size});
  const auto placed = place(layer, all.narrow(1, 0, heads + kv_heads), numbers);
  const auto cache = cache_.select(0, static_cast<std::int64_t>(index));
  auto keys = cache.select(0, 0);
  auto values = cache.select(0, 1);
  keys.index_copy_(0, numbers.slots, placed.narrow(1, heads, kv_heads));
  values.index_copy_(0, numbers.slots, all.narrow(1, heads + kv_heads, kv_heads));
  double scale = spec_.attention_scale;
  if (spec_.has_layer_scale) scale /= static_cast<double>(index + 1);
  return attend_to(cache, placed.narrow(1, 0, heads), numbers,
                   {.scale = scale, .window = window_of(index)})
      .reshape({x.size(0), -1});
}

// A group of sequences after the other, so that what is gathered has a bound. Shapes: cache [2,
// slots, kv heads, head size]; query and the result [rows, heads, head size].
at::Tensor DeviceDecoder::attend_to(const at::Tensor& cache, const at::Tensor& query,
                                    const Numbers& numbers, const AttentionRule& rule) const {
  const auto keys = cache.select(0, 0);
  const auto values = cache.select(0, 1);
  std::vector<at::Tensor> parts;
  for (const auto& group : numbers.groups) {
    parts.push_back(attend_cached(query.narrow(0, group.first_row, group.row_count),
                                  keys.index_select(0, group.key_slots),
                                  values.index_select(0, group.key_slots), group.spans, rule));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 0);
}

// Norms of heads and rotation, in float32. Shapes: heads [rows, heads + kv heads, head size].
at::Tensor DeviceDecoder::place(const DeviceLayer& layer, const at::Tensor& heads,
                                const Numbers& numbers) const {
  if (!layer.query_norm.is_there() && !numbers.cosines.defined()) return heads;
  auto wide = heads.to(at::kFloat);
  if (layer.query_norm.is_there()) {
    const auto each = [&](std::int64_t begin, std::int64_t count, const DeviceNorm& norm) {
      const auto part = wide.narrow(1, begin, count);
      return normed(part.reshape({-1, spec_.head_size}), norm).view(part.sizes());
    };
    wide = at::cat({each(0, spec_.head_count, layer.query_norm),
                    each(spec_.head_count, spec_.kv_head_count, layer.key_norm)},
                   1);
  }
  if (numbers.cosines.defined()) {
    const auto pairs = numbers.cosines.size(2);
    const auto first = wide.narrow(2, 0, pairs);
    const auto second = wide.narrow(2, pairs, pairs);
    std::vector<at::Tensor> parts{first.mul(numbers.cosines).sub_(second.mul(numbers.sines)),
                                  second.mul(numbers.cosines).add_(first.mul(numbers.sines))};
    const auto rest = wide.size(2) - 2 * pairs;
    if (rest > 0) parts.push_back(wide.narrow(2, 2 * pairs, rest));
    wide = at::cat(parts, 2);
  }
  return wide.to(type_);
}

at::Tensor DeviceDecoder::feed_forward(const DeviceLayer& layer, const at::Tensor& x) const {
  const auto wide = at::linear(x, layer.up.weight, layer.up.bias);
  const std::int64_t size = spec_.intermediate_size;
  auto gate = wide.narrow(1, 0, size);
  activate(gate, spec_.activation);
  return spec_.is_gated ? gate.mul(wide.narrow(1, size, size)) : gate;
}

// Rounded once, at the end of the sum, and to float32: two likely tokens are often nearer to each
// other than two numbers of bfloat16.
at::Tensor DeviceDecoder::head_of(const at::Tensor& x) const {
  const auto head = weights_.head.t();
  return x.scalar_type() == at::kFloat ? at::mm(x, head) : at::mm(x, head, at::kFloat);
}

at::Tensor DeviceDecoder::logits_of(const at::Tensor& hidden, const Numbers& numbers) const {
  const auto last = hidden.index_select(0, numbers.logit_rows);
  return head_of(into_product(last, weights_.final_norm));
}

}  // namespace muster::engine
