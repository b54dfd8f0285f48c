#include "worker/row_closeness.h"

#include <algorithm>
#include <cmath>

namespace muster {
namespace {

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0;
  double square_a = 0;
  double square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * double{b[i]};
    square_a += double{a[i]} * double{a[i]};
    square_b += double{b[i]} * double{b[i]};
  }
  const double value = product / std::sqrt(square_a * square_b);
  return std::isfinite(value) ? value : 0;
}

}  // namespace

RowCloseness row_closeness(std::span<const float> rows, std::span<const float> reference,
                           std::size_t dim) {
  const auto count = rows.size() / dim;
  RowCloseness closeness;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = cosine(rows.subspan(i * dim, dim), reference.subspan(i * dim, dim));
    closeness.mean += value / static_cast<double>(count);
    closeness.min = std::min(closeness.min, value);
  }
  return closeness;
}

}  // namespace muster
