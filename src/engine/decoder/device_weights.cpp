// From the mapped file to the device. Plain floats in the file's own order are copied from its
// pages; all else goes through rows of float32 on the host.

#include "engine/decoder/device_weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>
#include <vector>

#include "engine/encoder.h"
#include "modelfile/dequantize.h"

namespace muster::engine {
namespace {

constexpr std::size_t kPartBytes = std::size_t{32} << 20;  // of the host's copy

// Of those that make floats of a part's rows: a few keep up with the file and the bus.
constexpr std::size_t kThreadsMost = 8;
constexpr std::size_t kRowsOfThreadLeast = 16;

std::optional<at::ScalarType> plain_type(const DensePart& part) {
  if (part.order || part.matrix.is_transposed) return std::nullopt;
  switch (static_cast<GgmlTypeId>(part.matrix.type->id)) {
    case GgmlTypeId::F32:
      return at::kFloat;
    case GgmlTypeId::F16:
      return at::kHalf;
    case GgmlTypeId::BF16:
      return at::kBFloat16;
    default:
      return std::nullopt;
  }
}

// Each row is read by one thread, a lane as the caller is, so that its bits do not depend on how
// many there are.
void read_rows(const DensePart& part, std::size_t begin, std::size_t count, float* to) {
  const auto columns = part.matrix.column_count;
  const auto read = [&part, begin, columns, to](std::size_t first, std::size_t end) {
    for (auto i = first; i < end; ++i) {
      part.matrix.read_row(part.source_row(begin + i), {to + i * columns, columns});
    }
  };
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const auto threads =
      std::clamp<std::size_t>(count / kRowsOfThreadLeast, 1, std::min(kThreadsMost, cores));
  const auto first_of = [count, threads](std::size_t i) { return count * i / threads; };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < threads; ++i) {
    others.emplace_back([&read, first = first_of(i), end = first_of(i + 1)] {
      enter_lane();
      read(first, end);
    });
  }
  read(0, first_of(1));
}

/// The rows [begin, begin + count) of a part, on the host.
at::Tensor rows_of(const DensePart& part, std::size_t begin, std::size_t count) {
  const auto columns = part.matrix.column_count;
  const std::array shape{static_cast<std::int64_t>(count), static_cast<std::int64_t>(columns)};
  if (const auto type = plain_type(part)) {
    const auto* data = part.matrix.data.data() + begin * part.matrix.row_bytes();
    // Nobody writes into it: the pages are mapped for reading.
    return at::from_blob(const_cast<std::byte*>(data), shape,  // NOLINT(*-const-cast)
                         at::TensorOptions().dtype(*type));
  }
  auto rows = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  read_rows(part, begin, count, rows.mutable_data_ptr<float>());
  return rows;
}

void copy_part(const DensePart& part, const at::Tensor& to) {
  const auto row_count = part.matrix.row_count;
  const auto at_once =
      std::max<std::size_t>(1, kPartBytes / (part.matrix.column_count * sizeof(float)));
  for (std::size_t begin = 0; begin < row_count; begin += at_once) {
    const auto count = std::min(at_once, row_count - begin);
    to.narrow(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(count))
        .copy_(rows_of(part, begin, count));
  }
  TensorSource::let_go(part.matrix);
}

at::Tensor matrix_of(const DensePart& part, const at::TensorOptions& floats) {
  auto matrix = at::empty({static_cast<std::int64_t>(part.matrix.row_count),
                           static_cast<std::int64_t>(part.matrix.column_count)},
                          floats);
  copy_part(part, matrix);
  return matrix;
}

at::Tensor vector_of(const std::vector<float>& values, const at::TensorOptions& floats) {
  auto host =
      at::empty({static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(at::kFloat));
  std::copy(values.begin(), values.end(), host.mutable_data_ptr<float>());
  return host.to(floats);
}

// A part without a bias beside one that has it gets zeros.
std::vector<float> bias_of(const DenseTensors& tensors) {
  const auto& parts = tensors.parts;
  const bool has_bias = std::any_of(parts.begin(), parts.end(),
                                    [](const DensePart& part) { return !part.bias.empty(); });
  std::vector<float> bias;
  if (!has_bias) return bias;
  for (const auto& part : parts) {
    for (std::size_t i = 0; i < part.matrix.row_count; ++i) {
      bias.push_back(part.bias.empty() ? 0.0F : part.bias[part.source_row(i)]);
    }
  }
  return bias;
}

DeviceLinear linear_of(const DenseTensors& tensors, const at::TensorOptions& floats) {
  std::int64_t out_size = 0;
  for (const auto& part : tensors.parts) {
    out_size += static_cast<std::int64_t>(part.matrix.row_count);
  }
  const auto in_size = static_cast<std::int64_t>(tensors.parts.front().matrix.column_count);
  DeviceLinear linear{.weight = at::empty({out_size, in_size}, floats), .bias = {}};
  std::int64_t first = 0;
  for (const auto& part : tensors.parts) {
    const auto count = static_cast<std::int64_t>(part.matrix.row_count);
    copy_part(part, linear.weight.narrow(0, first, count));
    first += count;
  }
  if (const auto bias = bias_of(tensors); !bias.empty()) linear.bias = vector_of(bias, floats);
  return linear;
}

DeviceNorm norm_of(const NormVectors& norm, const at::TensorOptions& floats) {
  if (!norm.is_there()) return {};
  const auto wide = floats.dtype(at::kFloat);
  return {vector_of(norm.weight, wide), vector_of(norm.bias, wide)};
}

DeviceLayer layer_of(const LayerTensors& tensors, const at::TensorOptions& floats) {
  return {.attention_norm = norm_of(tensors.attention_norm, floats),
          .qkv = linear_of(tensors.qkv, floats),
          .query_norm = norm_of(tensors.query_norm, floats),
          .key_norm = norm_of(tensors.key_norm, floats),
          .attention_out = linear_of(tensors.attention_out, floats),
          .attention_post_norm = norm_of(tensors.attention_post_norm, floats),
          .feed_forward_norm = norm_of(tensors.feed_forward_norm, floats),
          .up = linear_of(tensors.up, floats),
          .down = linear_of(tensors.down, floats),
          .feed_forward_post_norm = norm_of(tensors.feed_forward_post_norm, floats)};
}

std::uint64_t bytes_of(const at::Tensor& tensor) { return tensor.defined() ? tensor.nbytes() : 0; }
std::uint64_t bytes_of(const DeviceNorm& norm) {
  return bytes_of(norm.weight) + bytes_of(norm.bias);
}
std::uint64_t bytes_of(const DeviceLinear& linear) {
  return bytes_of(linear.weight) + bytes_of(linear.bias);
}

}  // namespace

std::uint64_t DeviceWeights::bytes() const {
  std::uint64_t sum = bytes_of(embedding) + bytes_of(positions) + bytes_of(final_norm);
  if (!head.is_same(embedding)) sum += bytes_of(head);
  for (const auto& layer : layers) {
    for (const auto* norm :
         {&layer.attention_norm, &layer.query_norm, &layer.key_norm, &layer.attention_post_norm,
          &layer.feed_forward_norm, &layer.feed_forward_post_norm}) {
      sum += bytes_of(*norm);
    }
    for (const auto* linear : {&layer.qkv, &layer.attention_out, &layer.up, &layer.down}) {
      sum += bytes_of(*linear);
    }
  }
  return sum;
}

DeviceWeights copy_to_device(const DecoderTensors& tensors, const DecoderSpec& spec,
                             const at::TensorOptions& floats) {
  DeviceWeights weights;
  weights.embedding = matrix_of({.matrix = tensors.embedding}, floats);
  if (tensors.positions) weights.positions = matrix_of({.matrix = *tensors.positions}, floats);
  for (const auto& layer : tensors.layers) weights.layers.push_back(layer_of(layer, floats));
  weights.final_norm = norm_of(tensors.final_norm, floats);
  weights.head =
      spec.has_tied_head ? weights.embedding : matrix_of(tensors.head.parts.front(), floats);
  return weights;
}

}  // namespace muster::engine
