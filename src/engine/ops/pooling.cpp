#include "engine/ops/pooling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace muster::engine {

void pool_tokens(Pooling pooling, std::span<const float> hidden, std::span<float> row) {
  const std::size_t dim = row.size();
  const std::size_t count = hidden.size() / dim;
  const auto token = [&](std::size_t i) { return hidden.subspan(i * dim, dim); };
  const auto first = pooling == Pooling::Last ? token(count - 1) : token(0);
  std::copy(first.begin(), first.end(), row.begin());
  if (pooling == Pooling::Mean) {
    for (std::size_t i = 1; i < count; ++i) {
      const float* values = token(i).data();
      for (std::size_t c = 0; c < dim; ++c) row[c] += values[c];
    }
    for (auto& value : row) value /= static_cast<float>(count);
  } else if (pooling == Pooling::Max) {
    for (std::size_t i = 1; i < count; ++i) {
      const float* values = token(i).data();
      for (std::size_t c = 0; c < dim; ++c) row[c] = std::max(row[c], values[c]);
    }
  }
}

void normalize_row(std::span<float> row) {
  double squares = 0;
  for (const float value : row) squares += static_cast<double>(value) * value;
  const auto length = static_cast<float>(std::max(std::sqrt(squares), 1e-12));
  for (auto& value : row) value /= length;
}

}  // namespace muster::engine
