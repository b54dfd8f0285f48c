#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "engine/ops/kernels.h"

namespace muster::engine {

/// Calls `visit(at, count, chain)` for each vector of a row; only the last has fewer than kWidth
/// lanes. `chain` goes round 0..3: four sums side by side hide the latency of an addition.
template <typename Simd, typename Visit>
[[gnu::always_inline]] inline void for_each_vector(std::size_t size, Visit&& visit) {
  constexpr std::size_t kStep = 4 * Simd::kWidth;
  std::size_t at = 0;
  for (; at + kStep <= size; at += kStep) {
    visit(at, Simd::kWidth, 0);
    visit(at + Simd::kWidth, Simd::kWidth, 1);
    visit(at + 2 * Simd::kWidth, Simd::kWidth, 2);
    visit(at + 3 * Simd::kWidth, Simd::kWidth, 3);
  }
  for (; at < size; at += Simd::kWidth) visit(at, std::min(Simd::kWidth, size - at), 0);
}

/// The sum of all lanes of four vectors.
template <typename Simd>
float sum_of(const typename Simd::Vector (&chains)[4]) {
  return Simd::sum(Simd::add(Simd::add(chains[0], chains[1]), Simd::add(chains[2], chains[3])));
}

template <typename Simd, typename T>
typename Simd::Vector load_some(const T* from, std::size_t count) {
  return count == Simd::kWidth ? Simd::load(from) : Simd::load_first(from, count);
}

template <typename Simd, typename T>
void store_some(T* to, typename Simd::Vector value, std::size_t count) {
  if (count == Simd::kWidth) {
    Simd::store(to, value);
  } else {
    Simd::store_first(to, value, count);
  }
}

/// hidden = layer_norm(hidden + update) for one row, two passes over it while it is in the cache:
/// the variance around the known mean does not cancel as the one-pass formula does.
template <typename Simd, typename T>
void add_layer_norm_row(const LayerNormShape& shape, float* hidden, const T* update,
                        Bfloat16* narrow) {
  using Vector = typename Simd::Vector;
  const auto size = static_cast<float>(shape.size);
  const Vector zero = Simd::broadcast(0);
  Vector totals[4] = {zero, zero, zero, zero};
  for_each_vector<Simd>(shape.size, [&](std::size_t at, std::size_t count, int chain) {
    const Vector sum =
        Simd::add(load_some<Simd>(hidden + at, count), load_some<Simd>(update + at, count));
    store_some<Simd>(hidden + at, sum, count);
    totals[chain] = Simd::add(totals[chain], sum);
  });
  const Vector mean = Simd::broadcast(sum_of<Simd>(totals) / size);

  Vector squares[4] = {zero, zero, zero, zero};
  for_each_vector<Simd>(shape.size, [&](std::size_t at, std::size_t count, int chain) {
    Vector offset = Simd::subtract(load_some<Simd>(hidden + at, count), mean);
    if (count < Simd::kWidth) offset = Simd::first(offset, zero, count);
    squares[chain] = Simd::multiply_add(offset, offset, squares[chain]);
  });
  const Vector inverse =
      Simd::broadcast(1.0F / std::sqrt(sum_of<Simd>(squares) / size + shape.epsilon));

  for_each_vector<Simd>(shape.size, [&](std::size_t at, std::size_t count, int) {
    const Vector offset = Simd::subtract(load_some<Simd>(hidden + at, count), mean);
    const Vector value = Simd::multiply_add(Simd::multiply(offset, inverse),
                                            load_some<Simd>(shape.weight + at, count),
                                            load_some<Simd>(shape.bias + at, count));
    store_some<Simd>(hidden + at, value, count);
    if (narrow != nullptr) store_some<Simd>(narrow + at, value, count);
  });
}

template <typename Simd, typename T>
void add_layer_norm(const LayerNormShape& shape, std::size_t row_count, float* hidden,
                    const T* update, Bfloat16* narrow) {
  for (std::size_t i = 0; i < row_count; ++i) {
    const std::size_t at = i * shape.size;
    add_layer_norm_row<Simd>(shape, hidden + at, update + at,
                             narrow == nullptr ? nullptr : narrow + at);
  }
}

}  // namespace muster::engine
