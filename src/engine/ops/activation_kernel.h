#pragma once

#include "engine/ops/attention_kernel.h"

namespace muster::engine {

/// erf(x), within 4e-7.
/// Source: the rational approximation of XLA and Eigen (`generic_fast_erf_float`): an odd
/// polynomial over an even one on [-4, 4], where erf is 1 in float32 beyond.
template <typename Simd>
typename Simd::Vector erf_of(typename Simd::Vector x) {
  constexpr float kOver[] = {2.77068142495902e-08F,  -2.10102402082508e-06F,
                             -5.69250639462346e-05F, -7.34990630326855e-04F,
                             -2.95459980854025e-03F, -1.60960333262415e-02F};
  constexpr float kUnder[] = {-2.13374055278905e-04F, -1.68282697438203e-03F,
                              -7.37332916720468e-03F, -1.42647390514189e-02F};
  x = Simd::max(Simd::min(x, Simd::broadcast(4.0F)), Simd::broadcast(-4.0F));
  const auto square = Simd::multiply(x, x);
  auto over = Simd::broadcast(-2.72614225801306e-10F);
  for (const float term : kOver) over = Simd::multiply_add(over, square, Simd::broadcast(term));
  auto under = Simd::broadcast(-1.45660718464996e-05F);
  for (const float term : kUnder) under = Simd::multiply_add(under, square, Simd::broadcast(term));
  return Simd::divide(Simd::multiply(x, over), under);
}

/// x Phi(x). Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units", section 2.
template <typename Simd>
typename Simd::Vector gelu(typename Simd::Vector x) {
  const auto half = Simd::multiply(x, Simd::broadcast(0.5F));
  return Simd::multiply_add(half, erf_of<Simd>(Simd::multiply(x, Simd::broadcast(0.70710678F))),
                            half);
}

/// The same paper's approximation: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which is
/// x / (1 + e^(-2 u)); the power is taken of -2 |u|, so that nothing overflows.
template <typename Simd>
typename Simd::Vector gelu_tanh(typename Simd::Vector x) {
  const auto one = Simd::broadcast(1.0F);
  const auto cubic = Simd::multiply_add(Simd::multiply(x, x), Simd::broadcast(0.044715F), one);
  const auto twice = Simd::multiply(Simd::multiply(x, cubic), Simd::broadcast(1.5957691F));  // 2 u
  const auto zero = Simd::broadcast(0);
  const auto power = exp_of_negative<Simd>(Simd::min(twice, Simd::subtract(zero, twice)));
  // u >= 0: x / (1 + p); u < 0: x p / (1 + p).
  const auto share = Simd::divide(x, Simd::add(one, power));
  return Simd::select_negative(twice, Simd::multiply(share, power), share);
}

template <typename Simd>
typename Simd::Vector relu(typename Simd::Vector x) {
  return Simd::max(Simd::broadcast(0), x);  // the second one where x is not a number
}

}  // namespace muster::engine
