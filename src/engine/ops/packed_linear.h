#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "engine/ops/bf16_product.h"
#include "engine/ops/fp32_product.h"
#include "engine/ops/int8_product.h"
#include "engine/ops/lane_team.h"
#include "spec/encoder_spec.h"
#include "spec/precision.h"

namespace muster::engine {

/// y = activation(x W^T + b) on the CPU, the weight packed once: for our own product where this CPU
/// has one for the precision (`best_bf16_product`, `best_fp32_product`, `best_int8_kernels`), else
/// for oneDNN.
///
/// In int8 rows come and go in float32: `apply` quantises them, each by itself.
///
/// Threads: immutable; lanes share one.
class PackedLinear {
 public:
  /// Shapes: weight [out, in] and bias [out], float32. Fp32, Bf16 and Int8 only.
  PackedLinear(const at::Tensor& weight, const at::Tensor& bias, Precision precision,
               std::int64_t row_count_max);

  /// Shapes: x [rows, in], dense -> [rows, out], both of `scalar_type` of the precision.
  /// The activation is applied to the float32 sums, before any rounding.
  /// With a seat our own products are shared out by panels of outputs, each computed as it is
  /// alone; oneDNN's is not, since its kernels may sum in another order for fewer outputs.
  at::Tensor apply(const at::Tensor& x, std::optional<Activation> activation, LaneSeat& seat) const;
  at::Tensor apply(const at::Tensor& x, std::optional<Activation> activation = std::nullopt) const;

  std::int64_t in_size() const { return in_size_; }

  /// Whether any number of rows gives a row the same bits; else `agreeing_row_counts` finds out.
  bool takes_any_row_count() const {
    return bf16_product_ != nullptr || fp32_product_ != nullptr || int8_kernels_ != nullptr;
  }

 private:
  void pack_for_bf16(const at::Tensor& weight, const at::Tensor& bias);
  void pack_for_fp32(const at::Tensor& weight, const at::Tensor& bias);
  void pack_for_int8(const at::Tensor& weight, const at::Tensor& bias);
  at::Tensor apply_bf16(const at::Tensor& x, std::optional<Activation> activation,
                        LaneSeat& seat) const;
  at::Tensor apply_fp32(const at::Tensor& x, std::optional<Activation> activation,
                        LaneSeat& seat) const;
  at::Tensor apply_int8(const at::Tensor& x, std::optional<Activation> activation,
                        LaneSeat& seat) const;

  // All nullptr: oneDNN's.
  Bf16Product bf16_product_;
  Fp32Product fp32_product_;
  const Int8Kernels* int8_kernels_;
  at::Tensor packed_;
  at::Tensor bias_;
  at::Tensor scales_;  // of int8, as `sums_`
  at::Tensor sums_;
  std::int64_t in_size_;
  std::int64_t out_size_;
};

/// What a product of so many rows takes, as in SharingLimits. Fewer than eight count as eight,
/// since what takes the time is reading the weight. Source: docs/decisions/035-shared-passes.md.
std::uint64_t product_work(std::size_t row_count, std::size_t in_size, std::size_t out_size);

/// Of the rows that products read and write: float32, bfloat16 or half; float32 in int8.
at::ScalarType scalar_type(Precision precision);

}  // namespace muster::engine
