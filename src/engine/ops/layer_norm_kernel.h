#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "engine/ops/kernels.h"

namespace muster::engine {

/// Calls `visit(at, count)` for each vector of a row; only the last has fewer than kWidth lanes.
template <typename Simd, typename Visit>
void for_each_vector(std::size_t size, Visit&& visit) {
  for (std::size_t at = 0; at < size; at += Simd::kWidth) {
    visit(at, std::min(Simd::kWidth, size - at));
  }
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
  Vector total = Simd::broadcast(0);
  for_each_vector<Simd>(shape.size, [&](std::size_t at, std::size_t count) {
    const Vector sum =
        Simd::add(load_some<Simd>(hidden + at, count), load_some<Simd>(update + at, count));
    store_some<Simd>(hidden + at, sum, count);
    total = Simd::add(total, sum);
  });
  const Vector mean = Simd::broadcast(Simd::sum(total) / size);

  Vector squares = Simd::broadcast(0);
  for_each_vector<Simd>(shape.size, [&](std::size_t at, std::size_t count) {
    Vector offset = Simd::subtract(load_some<Simd>(hidden + at, count), mean);
    if (count < Simd::kWidth) offset = Simd::first(offset, Simd::broadcast(0), count);
    squares = Simd::multiply_add(offset, offset, squares);
  });
  const Vector inverse =
      Simd::broadcast(1.0F / std::sqrt(Simd::sum(squares) / size + shape.epsilon));

  for_each_vector<Simd>(shape.size, [&](std::size_t at, std::size_t count) {
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
