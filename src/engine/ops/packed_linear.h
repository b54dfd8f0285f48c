#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "spec/encoder_spec.h"
#include "spec/precision.h"

namespace muster::engine {

/// y = activation(x W^T + b) on the CPU, the weight packed once for oneDNN.
///
/// Threads: immutable; lanes share one.
class PackedLinear {
 public:
  /// Shapes: weight [out, in] and bias [out], float32. Fp32 and Bf16 only.
  PackedLinear(const at::Tensor& weight, const at::Tensor& bias, Precision precision,
               std::int64_t row_count_max);

  /// Shapes: x [rows, in] -> [rows, out], both in the precision of the weight.
  at::Tensor apply(const at::Tensor& x) const { return apply_fused(x, "none", ""); }
  /// The activation is applied to the float32 sums, before any rounding.
  at::Tensor apply(const at::Tensor& x, Activation activation) const;

  std::int64_t in_size() const { return in_size_; }

 private:
  at::Tensor apply_fused(const at::Tensor& x, std::string_view attribute,
                         std::string_view algorithm) const;

  at::Tensor packed_;
  at::Tensor bias_;
  std::int64_t in_size_;
};

/// float32 or bfloat16.
at::ScalarType scalar_type(Precision precision);

}  // namespace muster::engine
