// The inner loop of every search: float32 in, float64 sums.

#include "jobs/vector_products.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace muster {
namespace {

constexpr std::size_t kLanes = 16;  // sums that do not wait for each other: two AVX-512 registers

// A product of two float32 is exact in float64, so fused and separate additions give the same bits,
// and with the lanes and their order fixed every instruction set gives the same sums.
template <bool kWithItself>
[[gnu::always_inline]] inline RowProducts multiply(const float* row, const float* query,
                                                   std::size_t dim) {
  std::array<double, kLanes> with_query{};
  std::array<double, kLanes> with_itself{};
  std::size_t at = 0;
  for (; at + kLanes <= dim; at += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = row[at + lane];
      with_query[lane] += value * static_cast<double>(query[at + lane]);
      if constexpr (kWithItself) with_itself[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; at < dim; ++lane, ++at) {
    const double value = row[at];
    with_query[lane] += value * static_cast<double>(query[at]);
    if constexpr (kWithItself) with_itself[lane] += value * value;
  }
  RowProducts sum;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sum.with_query += with_query[lane];
    sum.with_itself += with_itself[lane];
  }
  return sum;
}

using Multiply = RowProducts (*)(const float*, const float*, std::size_t);

#if defined(__x86_64__)
template <bool kWithItself>
[[gnu::target("avx2,fma")]] RowProducts multiply_avx2(const float* row, const float* query,
                                                      std::size_t dim) {
  return multiply<kWithItself>(row, query, dim);
}
#endif

template <bool kWithItself>
RowProducts multiply_plain(const float* row, const float* query, std::size_t dim) {
  return multiply<kWithItself>(row, query, dim);
}

template <bool kWithItself>
Multiply fastest_multiply() {
#if defined(__x86_64__)
  __builtin_cpu_init();  // this is called before main
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return multiply_avx2<kWithItself>;
  }
#endif
  return multiply_plain<kWithItself>;
}

const Multiply kBoth = fastest_multiply<true>();
const Multiply kOne = fastest_multiply<false>();

}  // namespace

RowProducts multiply_row(std::span<const float> row, std::span<const float> query) {
  return kBoth(row.data(), query.data(), query.size());
}

double dot_product(std::span<const float> a, std::span<const float> b) {
  return kOne(a.data(), b.data(), b.size()).with_query;
}

// Rounding may carry a cosine past 1 by the last bit.
double cosine_of(double product, double square_a, double square_b) {
  const double cosine = product / std::sqrt(square_a * square_b);
  return std::isfinite(cosine) ? std::clamp(cosine, -1.0, 1.0) : cosine;
}

}  // namespace muster
