#include "engine/ops/packed_linear.h"

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_to_copy.h>

#include <optional>

namespace muster::engine {
namespace {

using Scalars = c10::List<std::optional<at::Scalar>>;

// The wheel has no C++ header for these: torch.compile's fused operators, called by their schema.
// Source: torch 2.11, aten/src/ATen/native/mkldnn/RegisterMkldnnOpContextClass.cpp.
at::Tensor reorder_linear_weight(const at::Tensor& weight, std::int64_t row_count) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("mkldnn::_reorder_linear_weight", "")
                             .typed<at::Tensor(const at::Tensor&, std::optional<std::int64_t>)>();
  return op.call(weight, row_count);
}

at::Tensor linear_pointwise(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            std::string_view attribute, std::string_view algorithm) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                            std::string_view, Scalars, std::optional<std::string_view>)>();
  return op.call(x, weight, bias, attribute, Scalars(), algorithm);
}

}  // namespace

at::ScalarType scalar_type(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
      return at::kFloat;
    case Precision::Bf16:
      return at::kBFloat16;
    case Precision::Fp16:
      return at::kHalf;
  }
  return at::kFloat;
}

PackedLinear::PackedLinear(const at::Tensor& weight, const at::Tensor& bias, Precision precision,
                           std::int64_t row_count_max)
    : packed_(reorder_linear_weight(at::_to_copy(weight, scalar_type(precision)), row_count_max)),
      bias_(at::_to_copy(bias, scalar_type(precision))),
      in_size_(weight.size(1)) {}

at::Tensor PackedLinear::apply(const at::Tensor& x, Activation activation) const {
  switch (activation) {
    case Activation::Gelu:
      return apply_fused(x, "gelu", "none");
    case Activation::GeluTanh:
      return apply_fused(x, "gelu", "tanh");
    case Activation::Relu:
      return apply_fused(x, "relu", "");
  }
  return apply(x);
}

at::Tensor PackedLinear::apply_fused(const at::Tensor& x, std::string_view attribute,
                                     std::string_view algorithm) const {
  return linear_pointwise(x, packed_, bias_, attribute, algorithm);
}

}  // namespace muster::engine
