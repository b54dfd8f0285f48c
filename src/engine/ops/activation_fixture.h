#pragma once

#include <algorithm>
#include <cmath>

#include "spec/encoder_spec.h"

namespace muster::engine {

/// What the tests of products expect of an activation, in double precision.
///
/// Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units", section 2: x Phi(x), and the
/// approximation by tanh.
inline double formula(Activation activation, double x) {
  switch (activation) {
    case Activation::Gelu:
      return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::GeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::Relu:
      return std::max(x, 0.0);
  }
  return x;
}

}  // namespace muster::engine
