// One interface for four products: our own in int8, in bf16 and float32 where the CPU has the
// instructions, and oneDNN's with a weight that is reordered once. Which one is decided when the
// weight is packed, since each has its own layout. The bias is padded like the outputs, so the
// inner loops of our own products need no case for the last panel.

#include "engine/ops/packed_linear.h"

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_to_copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <string_view>

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

at::Tensor multiply_by_onednn(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                              std::optional<Activation> activation) {
  if (!activation) return linear_pointwise(x, weight, bias, "none", "");
  switch (*activation) {
    case Activation::Gelu:
      return linear_pointwise(x, weight, bias, "gelu", "none");
    case Activation::GeluTanh:
      return linear_pointwise(x, weight, bias, "gelu", "tanh");
    case Activation::Relu:
      return linear_pointwise(x, weight, bias, "relu", "");
  }
  return linear_pointwise(x, weight, bias, "none", "");
}

// Items of a product that is shared out: a few for each lane, so that all end at about the same
// time, but none so small that claiming it takes a tenth of its time.
constexpr std::size_t kItemsOfALane = 8;
constexpr std::uint64_t kItemWork = std::uint64_t{1} << 18U;  // as in SharingLimits

// Calls `multiply(begin, end)` for ranges of panels that are all of them together.
template <typename Multiply>
void share_panels(LaneSeat& seat, std::uint64_t work, std::size_t panel_count,
                  Multiply&& multiply) {
  const std::size_t lanes = seat.lanes_now(work);
  if (lanes < 2) return multiply(std::size_t{0}, panel_count);
  const std::size_t count = std::min(
      {panel_count, kItemsOfALane * lanes, std::max<std::size_t>(lanes, work / kItemWork)});
  seat.share({.count = count, .work = work}, [&](std::size_t item, std::size_t) {
    multiply(panel_count * item / count, panel_count * (item + 1) / count);
  });
}

}  // namespace

at::ScalarType scalar_type(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
    case Precision::Int8:
      return at::kFloat;
    case Precision::Bf16:
      return at::kBFloat16;
    case Precision::Fp16:
      return at::kHalf;
  }
  return at::kFloat;
}

std::uint64_t product_work(std::size_t row_count, std::size_t in_size, std::size_t out_size) {
  constexpr std::size_t kRowsLeast = 8;
  return std::uint64_t{std::max(kRowsLeast, row_count)} * in_size * out_size;
}

PackedLinear::PackedLinear(const at::Tensor& weight, const at::Tensor& bias, Precision precision,
                           std::int64_t row_count_max)
    : bf16_product_(precision == Precision::Bf16 ? best_bf16_product() : nullptr),
      fp32_product_(precision == Precision::Fp32 ? best_fp32_product() : nullptr),
      int8_kernels_(precision == Precision::Int8 ? &best_int8_kernels() : nullptr),
      in_size_(weight.size(1)),
      out_size_(weight.size(0)) {
  if (bf16_product_ != nullptr) {
    pack_for_bf16(weight, bias);
  } else if (fp32_product_ != nullptr) {
    pack_for_fp32(weight, bias);
  } else if (int8_kernels_ != nullptr) {
    pack_for_int8(weight, bias);
  } else {
    const auto type = scalar_type(precision);
    packed_ = reorder_linear_weight(at::_to_copy(weight, type), row_count_max);
    bias_ = at::_to_copy(bias, type);
  }
}

void PackedLinear::pack_for_bf16(const at::Tensor& weight, const at::Tensor& bias) {
  const auto in = static_cast<std::size_t>(in_size_);
  const auto out = static_cast<std::size_t>(out_size_);
  packed_ = at::empty({static_cast<std::int64_t>(panels_size(out, in))}, at::kBFloat16);
  pack_panels(weight.contiguous().const_data_ptr<float>(), out, in,
              static_cast<Bfloat16*>(packed_.mutable_data_ptr()));
  bias_ = at::zeros({static_cast<std::int64_t>(padded_outputs(out))}, at::kFloat);
  bias_.narrow(0, 0, out_size_).copy_(bias);
}

void PackedLinear::pack_for_fp32(const at::Tensor& weight, const at::Tensor& bias) {
  const auto in = static_cast<std::size_t>(in_size_);
  const auto out = static_cast<std::size_t>(out_size_);
  const auto padded = static_cast<std::int64_t>(Fp32Matrix::padded_outputs(out));
  packed_ = at::empty({padded * in_size_}, at::kFloat);
  pack_fp32_panels(weight.contiguous().const_data_ptr<float>(), out, in,
                   packed_.mutable_data_ptr<float>());
  bias_ = at::zeros({padded}, at::kFloat);
  bias_.narrow(0, 0, out_size_).copy_(bias);
}

void PackedLinear::pack_for_int8(const at::Tensor& weight, const at::Tensor& bias) {
  const auto in = static_cast<std::size_t>(in_size_);
  const auto out = static_cast<std::size_t>(out_size_);
  const auto padded = static_cast<std::int64_t>(Int8Matrix::padded_outputs(out));
  packed_ =
      at::empty({padded * static_cast<std::int64_t>(Int8Matrix::padded_inputs(in))}, at::kChar);
  scales_ = at::empty({padded}, at::kFloat);
  sums_ = at::empty({padded}, at::kInt);
  pack_int8_panels(weight.contiguous().const_data_ptr<float>(), out, in,
                   {packed_.mutable_data_ptr<std::int8_t>(), scales_.mutable_data_ptr<float>(),
                    sums_.mutable_data_ptr<std::int32_t>()});
  bias_ = at::zeros({padded}, at::kFloat);
  bias_.narrow(0, 0, out_size_).copy_(bias);
}

at::Tensor PackedLinear::apply(const at::Tensor& x, std::optional<Activation> activation) const {
  LaneSeat alone;
  return apply(x, activation, alone);
}

at::Tensor PackedLinear::apply(const at::Tensor& x, std::optional<Activation> activation,
                               LaneSeat& seat) const {
  if (bf16_product_ != nullptr) return apply_bf16(x, activation, seat);
  if (fp32_product_ != nullptr) return apply_fp32(x, activation, seat);
  if (int8_kernels_ != nullptr) return apply_int8(x, activation, seat);
  return multiply_by_onednn(x, packed_, bias_, activation);
}

at::Tensor PackedLinear::apply_bf16(const at::Tensor& x, std::optional<Activation> activation,
                                    LaneSeat& seat) const {
  auto out = at::empty({x.size(0), out_size_}, at::kBFloat16);
  const PackedMatrix matrix{static_cast<const Bfloat16*>(packed_.const_data_ptr()),
                            bias_.const_data_ptr<float>(), static_cast<std::size_t>(in_size_),
                            static_cast<std::size_t>(out_size_)};
  const auto row_count = static_cast<std::size_t>(x.size(0));
  const auto* from = static_cast<const Bfloat16*>(x.const_data_ptr());
  auto* to = static_cast<Bfloat16*>(out.mutable_data_ptr());
  share_panels(seat, product_work(row_count, matrix.in_size, matrix.out_size), matrix.panel_count(),
               [&](std::size_t begin, std::size_t end) {
                 bf16_product_(matrix.panel_range(begin, end), row_count, from, activation,
                               to + begin * PackedMatrix::kColumns);
               });
  return out;
}

at::Tensor PackedLinear::apply_fp32(const at::Tensor& x, std::optional<Activation> activation,
                                    LaneSeat& seat) const {
  auto out = at::empty({x.size(0), out_size_}, at::kFloat);
  const Fp32Matrix matrix{packed_.const_data_ptr<float>(), bias_.const_data_ptr<float>(),
                          static_cast<std::size_t>(in_size_), static_cast<std::size_t>(out_size_)};
  const auto row_count = static_cast<std::size_t>(x.size(0));
  const auto* from = x.const_data_ptr<float>();
  auto* to = out.mutable_data_ptr<float>();
  share_panels(seat, product_work(row_count, matrix.in_size, matrix.out_size), matrix.panel_count(),
               [&](std::size_t begin, std::size_t end) {
                 fp32_product_(matrix.panel_range(begin, end), row_count, from, activation,
                               to + begin * Fp32Matrix::kColumns);
               });
  return out;
}

at::Tensor PackedLinear::apply_int8(const at::Tensor& x, std::optional<Activation> activation,
                                    LaneSeat& seat) const {
  const auto in = static_cast<std::size_t>(in_size_);
  const auto out_size = static_cast<std::size_t>(out_size_);
  const auto row_count = static_cast<std::size_t>(x.size(0));
  auto out = at::empty({x.size(0), out_size_}, at::kFloat);
  auto quants =
      at::empty({x.size(0), static_cast<std::int64_t>(Int8Matrix::padded_inputs(in))}, at::kByte);
  auto scales = at::empty({x.size(0)}, at::kFloat);
  int8_kernels_->quantize(row_count, in, x.const_data_ptr<float>(),
                          quants.mutable_data_ptr<std::uint8_t>(),
                          scales.mutable_data_ptr<float>());
  const Int8Matrix matrix{packed_.const_data_ptr<std::int8_t>(),
                          scales_.const_data_ptr<float>(),
                          sums_.const_data_ptr<std::int32_t>(),
                          bias_.const_data_ptr<float>(),
                          in,
                          out_size};
  const Int8Rows rows{row_count, quants.const_data_ptr<std::uint8_t>(),
                      scales.const_data_ptr<float>()};
  auto* to = out.mutable_data_ptr<float>();
  share_panels(seat, product_work(row_count, in, out_size), Int8Matrix::panel_count(out_size),
               [&](std::size_t begin, std::size_t end) {
                 int8_kernels_->multiply(matrix, begin, end, rows, activation, to);
               });
  return out;
}

}  // namespace muster::engine
