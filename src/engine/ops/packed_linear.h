#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "engine/ops/bf16_product.h"
#include "engine/ops/fp32_product.h"
#include "spec/encoder_spec.h"
#include "spec/precision.h"

namespace muster::engine {

/// y = activation(x W^T + b) on the CPU, the weight packed once: for our own product where this CPU
/// has one for the precision (`best_bf16_product`, `best_fp32_product`), else for oneDNN.
///
/// Threads: immutable; lanes share one.
class PackedLinear {
 public:
  /// Shapes: weight [out, in] and bias [out], float32. Fp32 and Bf16 only.
  PackedLinear(const at::Tensor& weight, const at::Tensor& bias, Precision precision,
               std::int64_t row_count_max);

  /// Shapes: x [rows, in] -> [rows, out], both in the precision of the weight.
  /// The activation is applied to the float32 sums, before any rounding.
  at::Tensor apply(const at::Tensor& x, std::optional<Activation> activation = std::nullopt) const;

  std::int64_t in_size() const { return in_size_; }

  /// Whether any number of rows gives a row the same bits; else `agreeing_row_counts` finds out.
  bool takes_any_row_count() const { return bf16_product_ != nullptr || fp32_product_ != nullptr; }

 private:
  void pack_for_bf16(const at::Tensor& weight, const at::Tensor& bias);
  void pack_for_fp32(const at::Tensor& weight, const at::Tensor& bias);
  at::Tensor apply_bf16(const at::Tensor& x, std::optional<Activation> activation) const;
  at::Tensor apply_fp32(const at::Tensor& x, std::optional<Activation> activation) const;

  // Both nullptr: oneDNN's.
  Bf16Product bf16_product_;
  Fp32Product fp32_product_;
  at::Tensor packed_;
  at::Tensor bias_;
  std::int64_t in_size_;
  std::int64_t out_size_;
};

/// float32 or bfloat16.
at::ScalarType scalar_type(Precision precision);

}  // namespace muster::engine
