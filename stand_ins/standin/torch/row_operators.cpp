// Operators that make a tensor, and those whose CPU kernels treat the last elements of a tensor
// otherwise than the rest: CUDA's kernels treat all alike, so these go row by row.

#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/index_copy.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/segment_reduce.h>
#include <ATen/ops/silu.h>
#include <c10/core/WrapDimMinimal.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "standin/torch/kernel_call.h"

namespace muster::standin {
namespace {

// As many elements as the CPU's loops take at once in any of these types: two vectors of 32 halves.
// Rows of whole such steps leave no rest. Source: torch 2.11, ATen/native/cpu/Loops.h,
// vectorized_loop.
constexpr std::int64_t kStep = 64;

// An operator is refused by name for what its kernel here is not made for.
void check_made_for(bool is_so, const char* name, const char* what) {
  TORCH_CHECK_NOT_IMPLEMENTED(is_so, "the stand-in device has a kernel of ", name, " for ", what,
                              " alone");
}

at::Tensor index_select(const at::Tensor& table, std::int64_t dim, const at::Tensor& index) {
  check_made_for(table.dim() > 0, "aten::index_select", "tables of rows");
  dim = c10::maybe_wrap_dim(dim, table.dim());
  auto size = table.sizes().vec();
  size.at(static_cast<std::size_t>(dim)) = index.numel();
  auto rows = at::empty(size, table.options());
  if (rows.numel() == 0) return rows;
  KernelCall call("aten::index_select", table.device());
  call.launch([table = call.read(table), index = call.read(index), to = call.write(rows), dim] {
    auto out = to;
    at::index_select_out(out, table, dim, index);
  });
  return rows;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm(const at::Tensor& x,
                                                          c10::IntArrayRef shape,
                                                          const std::optional<at::Tensor>& weight,
                                                          const std::optional<at::Tensor>& bias,
                                                          double epsilon) {
  check_made_for(shape.size() == 1 && weight && bias, "aten::native_layer_norm",
                 "rows with weight and bias");
  auto moments_size = x.sizes().vec();
  moments_size.back() = 1;
  const auto moments = x.options().dtype(at::kFloat);
  std::tuple result{at::empty(x.sizes(), x.options()), at::empty(moments_size, moments),
                    at::empty(moments_size, moments)};
  KernelCall call("aten::native_layer_norm", x.device());
  call.launch([x = call.read(x), size = shape.front(), weight = call.read(*weight),
               bias = call.read(*bias), epsilon, out = call.write(std::get<0>(result)),
               mean = call.write(std::get<1>(result)),
               deviation = call.write(std::get<2>(result))] {
    const auto [rows, means, deviations] = at::native_layer_norm(x, {size}, weight, bias, epsilon);
    out.copy_(rows);
    mean.copy_(means);
    deviation.copy_(deviations);
  });
  return result;
}

// Element by element, so row by row where rows have a rest behind whole steps.
template <typename Apply>
void each_row(const at::Tensor& x, at::Tensor to, const Apply& apply) {
  if (x.size(-1) % kStep == 0) {
    apply(x, to);
    return;
  }
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    auto row = to.select(0, i);
    apply(x.select(0, i), row);
  }
}

at::Tensor& gelu(const at::Tensor& x, c10::string_view approximate, at::Tensor& out) {
  check_made_for(x.dim() == 2, "aten::gelu.out", "rows");
  KernelCall call("aten::gelu.out", x.device());
  call.launch([x = call.read(x), to = call.write(out), how = std::string(approximate)] {
    each_row(x, to, [&](const at::Tensor& from, at::Tensor& row) { at::gelu_out(row, from, how); });
  });
  return out;
}

at::Tensor& silu(const at::Tensor& x, at::Tensor& out) {
  check_made_for(x.dim() == 2, "aten::silu.out", "rows");
  KernelCall call("aten::silu.out", x.device());
  call.launch([x = call.read(x), to = call.write(out)] {
    each_row(x, to, [](const at::Tensor& from, at::Tensor& row) { at::silu_out(row, from); });
  });
  return out;
}

// The table is not copied onto itself, as an operator with a result of its own would.
at::Tensor& index_copy(const at::Tensor& table, std::int64_t dim, const at::Tensor& index,
                       const at::Tensor& rows, at::Tensor& out) {
  check_made_for(out.is_same(table) && dim == 0, "aten::index_copy.out", "rows in place");
  KernelCall call("aten::index_copy.out", table.device());
  call.launch([to = call.write(out), index = call.read(index), rows = call.read(rows)] {
    auto own = to;
    own.index_copy_(0, index, rows);
  });
  return out;
}

// cuBLAS multiplies 16 bits and rounds the sum once, to float32. A CPU has no such kernel.
at::Tensor mm_to(const at::Tensor& x, const at::Tensor& weight, c10::ScalarType type) {
  check_made_for(type == c10::kFloat, "aten::mm.dtype", "float32");
  auto product = at::empty({x.size(0), weight.size(1)}, x.options().dtype(type));
  KernelCall call("aten::mm.dtype", x.device());
  call.launch([x = call.read(x), weight = call.read(weight), to = call.write(product), type] {
    auto out = to;
    at::mm_out(out, x.to(type), weight.to(type));
  });
  return product;
}

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& x, c10::IntArrayRef shape,
                                            const std::optional<at::Tensor>& weight,
                                            std::optional<double> epsilon) {
  check_made_for(shape.size() == 1 && x.dim() == 2, "aten::_fused_rms_norm", "rows");
  std::tuple result{at::empty(x.sizes(), x.options()), at::empty({x.size(0), 1}, x.options())};
  KernelCall call("aten::_fused_rms_norm", x.device());
  std::optional<at::Tensor> own_weight;
  if (weight && weight->defined()) own_weight = call.read(*weight);
  call.launch([x = call.read(x), size = shape.front(), own_weight, epsilon,
               out = call.write(std::get<0>(result)), roots = call.write(std::get<1>(result))] {
    for (std::int64_t i = 0; i < x.size(0); ++i) {
      const auto [row, root] = at::_fused_rms_norm(x.narrow(0, i, 1), {size}, own_weight, epsilon);
      out.narrow(0, i, 1).copy_(row);
      roots.narrow(0, i, 1).copy_(root);
    }
  });
  return result;
}

at::Tensor segment_reduce(const at::Tensor& rows, c10::string_view how,
                          const std::optional<at::Tensor>& lengths,
                          const std::optional<at::Tensor>& indices,
                          const std::optional<at::Tensor>& offsets, std::int64_t axis, bool unsafe,
                          const std::optional<c10::Scalar>& initial) {
  check_made_for(
      !lengths && !indices && offsets && offsets->dim() == 1 && axis == 0 && unsafe && !initial,
      "aten::segment_reduce", "segments by their offsets, unsafe");
  auto size = rows.sizes().vec();
  size.front() = offsets->numel() - 1;
  const auto reduced = at::empty(size, rows.options());
  KernelCall call("aten::segment_reduce", rows.device());
  call.launch([rows = call.read(rows), offsets = call.read(*offsets), to = call.write(reduced),
               how = std::string(how)] {
    to.copy_(at::segment_reduce(rows, how, {}, {}, offsets, /*axis=*/0, /*unsafe=*/true));
  });
  return reduced;
}

at::Tensor& arange(const c10::Scalar& start, const c10::Scalar& end, const c10::Scalar& step,
                   at::Tensor& out) {
  const double count = std::ceil((end.to<double>() - start.to<double>()) / step.to<double>());
  out.resize_({static_cast<std::int64_t>(std::max(0.0, count))});
  if (out.numel() == 0) return out;
  KernelCall call("aten::arange.start_out", out.device());
  call.launch([start, end, step, to = call.write(out)] {
    auto numbers = to;
    at::arange_out(numbers, start, end, step);
  });
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("index_select", &index_select);
  library.impl("native_layer_norm", &layer_norm);
  library.impl("gelu.out", &gelu);
  library.impl("silu.out", &silu);
  library.impl("index_copy.out", &index_copy);
  library.impl("mm.dtype", &mm_to);
  library.impl("_fused_rms_norm", &rms_norm);
  library.impl("segment_reduce", &segment_reduce);
  library.impl("arange.start_out", &arange);
}

}  // namespace muster::standin
