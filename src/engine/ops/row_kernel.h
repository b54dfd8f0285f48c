#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "engine/ops/activation_kernel.h"
#include "engine/ops/decoder_kernels.h"
#include "engine/ops/hadamard.h"
#include "engine/ops/layer_norm_kernel.h"

namespace muster::engine {

// What a decoder does to one row between its products, written once over an instruction set.

template <typename Simd>
void rms_norm_row(const LayerNormShape& shape, const float* x, float* out) {
  using Vector = typename Simd::Vector;
  const Vector zero = Simd::broadcast(0);
  Vector squares[4] = {zero, zero, zero, zero};
  for_each_vector<Simd>(shape.size, [&](std::size_t at, std::size_t count, int chain) {
    const Vector value = load_some<Simd>(x + at, count);  // zeros behind the end
    squares[chain] = Simd::multiply_add(value, value, squares[chain]);
  });
  const float mean = sum_of<Simd>(squares) / static_cast<float>(shape.size);
  const Vector inverse = Simd::broadcast(1.0F / std::sqrt(mean + shape.epsilon));
  for_each_vector<Simd>(shape.size, [&](std::size_t at, std::size_t count, int) {
    const Vector value = Simd::multiply(load_some<Simd>(x + at, count), inverse);
    store_some<Simd>(out + at, Simd::multiply(value, load_some<Simd>(shape.weight + at, count)),
                     count);
  });
}

template <typename Simd>
void layer_norm_row(const LayerNormShape& shape, const float* x, float* out) {
  using Vector = typename Simd::Vector;
  const auto size = static_cast<float>(shape.size);
  const Vector zero = Simd::broadcast(0);
  Vector totals[4] = {zero, zero, zero, zero};
  for_each_vector<Simd>(shape.size, [&](std::size_t at, std::size_t count, int chain) {
    totals[chain] = Simd::add(totals[chain], load_some<Simd>(x + at, count));
  });
  const Vector mean = Simd::broadcast(sum_of<Simd>(totals) / size);
  Vector squares[4] = {zero, zero, zero, zero};
  for_each_vector<Simd>(shape.size, [&](std::size_t at, std::size_t count, int chain) {
    Vector offset = Simd::subtract(load_some<Simd>(x + at, count), mean);
    if (count < Simd::kWidth) offset = Simd::first(offset, zero, count);
    squares[chain] = Simd::multiply_add(offset, offset, squares[chain]);
  });
  const Vector inverse =
      Simd::broadcast(1.0F / std::sqrt(sum_of<Simd>(squares) / size + shape.epsilon));
  for_each_vector<Simd>(shape.size, [&](std::size_t at, std::size_t count, int) {
    const Vector offset = Simd::subtract(load_some<Simd>(x + at, count), mean);
    store_some<Simd>(out + at,
                     Simd::multiply_add(Simd::multiply(offset, inverse),
                                        load_some<Simd>(shape.weight + at, count),
                                        load_some<Simd>(shape.bias + at, count)),
                     count);
  });
}

/// x / (1 + e^-x), by e^-|x| so that nothing overflows: for x < 0 it is x e^x / (1 + e^x).
template <typename Simd>
typename Simd::Vector silu(typename Simd::Vector x) {
  const auto zero = Simd::broadcast(0);
  const auto power = exp_of_negative<Simd>(Simd::min(x, Simd::subtract(zero, x)));
  const auto share = Simd::divide(x, Simd::add(Simd::broadcast(1.0F), power));
  return Simd::select_negative(x, Simd::multiply(share, power), share);
}

template <typename Simd, typename Simd::Vector (*apply)(typename Simd::Vector)>
void gate_each(std::size_t size, float* gate, const float* up) {
  for (std::size_t at = 0; at < size; at += Simd::kWidth) {
    const std::size_t count = std::min(Simd::kWidth, size - at);
    auto value = apply(load_some<Simd>(gate + at, count));
    if (up != nullptr) value = Simd::multiply(value, load_some<Simd>(up + at, count));
    store_some<Simd>(gate + at, value, count);
  }
}

template <typename Simd>
void gate_row(DecoderActivation activation, std::size_t size, float* gate, const float* up) {
  switch (activation) {
    case DecoderActivation::Silu:
      return gate_each<Simd, silu<Simd>>(size, gate, up);
    case DecoderActivation::GeluTanh:
      return gate_each<Simd, gelu_tanh<Simd>>(size, gate, up);
    case DecoderActivation::Gelu:
      return gate_each<Simd, gelu<Simd>>(size, gate, up);
    case DecoderActivation::Relu:
      return gate_each<Simd, relu<Simd>>(size, gate, up);
  }
}

template <typename Simd>
void rotate_row(const Rotation& rotation, float* row) {
  const std::size_t pairs = rotation.pair_count;
  for (std::size_t head = 0; head < rotation.head_count; ++head, row += rotation.head_size) {
    for (std::size_t at = 0; at < pairs; at += Simd::kWidth) {
      const std::size_t count = std::min(Simd::kWidth, pairs - at);
      const auto cosine = load_some<Simd>(rotation.cosines + at, count);
      const auto sine = load_some<Simd>(rotation.sines + at, count);
      const auto first = load_some<Simd>(row + at, count);
      const auto second = load_some<Simd>(row + pairs + at, count);
      const auto crossed = Simd::multiply(second, sine);
      store_some<Simd>(
          row + at, Simd::multiply_add(first, cosine, Simd::subtract(Simd::broadcast(0), crossed)),
          count);
      store_some<Simd>(row + pairs + at,
                       Simd::multiply_add(second, cosine, Simd::multiply(first, sine)), count);
    }
  }
}

template <typename Simd>
void add_row(std::size_t size, const float* x, float* to) {
  for (std::size_t at = 0; at < size; at += Simd::kWidth) {
    const std::size_t count = std::min(Simd::kWidth, size - at);
    store_some<Simd>(
        to + at, Simd::add(load_some<Simd>(to + at, count), load_some<Simd>(x + at, count)), count);
  }
}

template <typename Simd>
void narrow_row(std::size_t size, const float* x, Bfloat16* out) {
  for (std::size_t at = 0; at < size; at += Simd::kWidth) {
    const std::size_t count = std::min(Simd::kWidth, size - at);
    store_some<Simd>(out + at, load_some<Simd>(x + at, count), count);
  }
}

/// What values are multiplied by to become quants of a scale: its reciprocal, or 0 where float32
/// has none, so that of values so small nothing is left.
template <typename Simd>
typename Simd::Vector inverse_of(float scale) {
  const float reciprocal = scale == 0 ? 0.0F : 1.0F / scale;
  return Simd::broadcast(std::isinf(reciprocal) ? 0.0F : reciprocal);
}

/// What a block's values share.
struct BlockScale {
  float scale;       // no number where a value is not finite
  std::int32_t sum;  // of the quants; 0 there
};

/// kInputs values to bytes with one scale.
template <typename Simd, std::size_t kInputs>
BlockScale quantize_block(const float* x, std::int8_t* quants) {
  constexpr std::size_t kVectors = kInputs / Simd::kWidth;
  typename Simd::Vector values[kVectors];
  auto most = Simd::broadcast(0);
  for (std::size_t v = 0; v < kVectors; ++v) {
    values[v] = Simd::load(x + v * Simd::kWidth);
    most = Simd::max(most, Simd::max(values[v], Simd::subtract(Simd::broadcast(0), values[v])));
  }
  const float scale = Simd::largest(most) / 127.0F;
  const auto inverse = inverse_of<Simd>(scale);
  auto total = Simd::broadcast(0);
  for (std::size_t v = 0; v < kVectors; ++v) {
    const auto rounded = Simd::round(Simd::multiply(values[v], inverse));
    total = Simd::add(total, rounded);  // whole numbers below 2^24: exact
    Simd::store_bytes(quants + v * Simd::kWidth, rounded);
  }
  const float sum = Simd::sum(total);
  // One value that is not finite is in the sum, whether or not `most` has it: infinity x 0 is no
  // number. The scale carries it on, since quants cannot.
  if (sum != sum) return {.scale = std::numeric_limits<float>::quiet_NaN(), .sum = 0};
  return {.scale = scale, .sum = static_cast<std::int32_t>(sum)};
}

template <typename Simd>
void quantize_row(std::size_t size, const float* x, ActivationBlock* blocks) {
  for (std::size_t at = 0; at < size; at += kBlockInputs) {
    ActivationBlock& block = blocks[at / kBlockInputs];
    const auto of_block = quantize_block<Simd, kBlockInputs>(x + at, block.quants);
    block.scale = of_block.scale;
    block.scaled_sum = block.scale * static_cast<float>(of_block.sum);
    block.sum = of_block.sum;
    block.minus_128_sum = -128 * block.sum;
  }
}

template <typename Simd>
void quantize_transformed_row(std::size_t size, const float* x, TransformedBlock* blocks) {
  for (std::size_t at = 0; at < size; at += kTransformedInputs) {
    float values[kTransformedInputs];
    for (std::size_t i = 0; i < kTransformedInputs; ++i) values[i] = x[at + i];
    hadamard_64(values);
    TransformedBlock& block = blocks[at / kTransformedInputs];
    const auto of_block = quantize_block<Simd, kTransformedInputs>(values, block.quants);
    block.scale = of_block.scale * kHadamardFactor;
    block.minus_128_sum = -128 * of_block.sum;
  }
}

/// `DecoderKernels::gate_blocks` in two steps.
template <typename Simd>
void gate_blocks_row(DecoderActivation activation, std::size_t size, float* gate, const float* up,
                     ActivationBlock* blocks) {
  gate_row<Simd>(activation, size, gate, up);
  quantize_row<Simd>(size, gate, blocks);
}

/// `DecoderKernels::gate_transformed` in two steps.
template <typename Simd>
void gate_transformed_row(DecoderActivation activation, std::size_t size, float* gate,
                          const float* up, TransformedBlock* blocks) {
  gate_row<Simd>(activation, size, gate, up);
  quantize_transformed_row<Simd>(size, gate, blocks);
}

template <typename Simd>
float quantize_head_row(std::size_t size, const float* x, std::int8_t* quants) {
  const auto zero = Simd::broadcast(0);
  auto most = zero;
  for (std::size_t at = 0; at < size; at += Simd::kWidth) {
    const auto value = load_some<Simd>(x + at, std::min(Simd::kWidth, size - at));
    most = Simd::max(most, Simd::max(value, Simd::subtract(zero, value)));
  }
  const float scale = Simd::largest(most) / 127.0F;
  const auto inverse = inverse_of<Simd>(scale);
  auto zeros = zero;
  for (std::size_t at = 0; at < size; at += Simd::kWidth) {
    const std::size_t count = std::min(Simd::kWidth, size - at);
    const auto rounded = Simd::round(Simd::multiply(load_some<Simd>(x + at, count), inverse));
    zeros = Simd::multiply_add(rounded, zero, zeros);
    if (count == Simd::kWidth) {
      Simd::store_bytes(quants + at, rounded);
    } else {
      std::int8_t rest[Simd::kWidth]{};
      Simd::store_bytes(rest, rounded);
      for (std::size_t i = 0; i < count; ++i) quants[at + i] = rest[i];
    }
  }
  // As of a block above: the scale carries on what is not finite.
  return Simd::sum(zeros) == 0 ? scale : std::numeric_limits<float>::quiet_NaN();
}

template <typename Simd>
void halve_head_row(std::size_t size, const float* x, Float16* out) {
  for (std::size_t at = 0; at < size; at += Simd::kWidth) {
    const std::size_t count = std::min(Simd::kWidth, size - at);
    const auto value = load_some<Simd>(x + at, count);
    if (count == Simd::kWidth) {
      Simd::store(out + at, value);
    } else {
      Float16 rest[Simd::kWidth];
      Simd::store(rest, value);
      for (std::size_t i = 0; i < count; ++i) out[at + i] = rest[i];
    }
  }
}

/// A key and a value as `PagedHead` has them; halve(size, x, out) rounds a vector. The key is
/// rounded where the value will lie, and goes from there to its columns.
template <typename Halve>
[[gnu::always_inline]] inline void keep_halves(std::size_t head_size, std::size_t place,
                                               const float* key, const float* value, Float16* block,
                                               Halve halve) {
  Float16* row = block + (kKvBlockTokens + place) * head_size;
  halve(head_size, key, row);
  for (std::size_t c = 0; c < head_size; ++c) block[c * kKvBlockTokens + place] = row[c];
  halve(head_size, value, row);
}

template <typename Simd>
void keep_fp16_rows(std::size_t head_size, std::size_t place, const float* key, const float* value,
                    Float16* block) {
  keep_halves(head_size, place, key, value, block, halve_head_row<Simd>);
}

/// The largest value of each block, then where that of the first block with the largest stands.
/// What is not finite is not zero when multiplied by zero, and goes before everything.
template <typename Simd>
std::size_t index_of_largest(std::size_t size, const float* values) {
  using Vector = typename Simd::Vector;
  constexpr std::size_t kBlock = 1024;
  const Vector zero = Simd::broadcast(0);
  const Vector lowest = Simd::broadcast(-std::numeric_limits<float>::infinity());
  float largest = -std::numeric_limits<float>::infinity();
  float sum = 0;
  std::size_t found = 0;  // a block
  for (std::size_t begin = 0; begin < size; begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, size);
    Vector most = lowest;
    Vector zeros = zero;
    std::size_t at = begin;
    for (; at + Simd::kWidth <= end; at += Simd::kWidth) {
      const Vector value = Simd::load(values + at);
      most = Simd::max(value, most);
      zeros = Simd::multiply_add(value, zero, zeros);
    }
    float here = Simd::largest(most);
    sum += Simd::sum(zeros);
    for (; at < end; ++at) {
      here = std::max(here, values[at]);
      sum += values[at] * 0.0F;
    }
    if (here > largest) {
      largest = here;
      found = begin;
    }
  }
  for (std::size_t i = sum == 0 ? found : 0; i < size; ++i) {
    if (sum == 0 ? values[i] == largest : !std::isfinite(values[i])) return i;
  }
  return 0;
}

/// `DecoderKernels::weigh`.
template <typename Simd>
float weigh_row(std::size_t size, float largest, float scale, float* x) {
  using Vector = typename Simd::Vector;
  const Vector zero = Simd::broadcast(0);
  const Vector least = Simd::broadcast(87.0F);  // of exp_of_negative
  Vector sums[4] = {zero, zero, zero, zero};
  for_each_vector<Simd>(size, [&](std::size_t at, std::size_t count, int chain) {
    const Vector below =
        Simd::multiply(Simd::subtract(load_some<Simd>(x + at, count), Simd::broadcast(largest)),
                       Simd::broadcast(scale));
    const Vector power = exp_of_negative<Simd>(below);
    Vector weight = Simd::select_negative(Simd::add(below, least), zero, power);
    if (count < Simd::kWidth) weight = Simd::first(weight, zero, count);
    store_some<Simd>(x + at, weight, count);
    sums[chain] = Simd::add(sums[chain], weight);
  });
  return sum_of<Simd>(sums);
}

}  // namespace muster::engine
