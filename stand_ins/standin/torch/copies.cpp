// Copies between host and device, and what the host asks of a device's numbers. As on CUDA a copy
// is waited for unless it was asked not to be and the host's side is pinned.

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <c10/core/Scalar.h>
#include <torch/library.h>

#include "standin/torch/kernel_call.h"

namespace muster::standin {
namespace {

// As a device that computes wrongly: one bit of every row.
void falsify(const at::Tensor& rows) {
  if (rows.dim() != 2 || rows.scalar_type() != c10::kFloat || rows.numel() == 0) return;
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    auto* bits = static_cast<std::uint8_t*>(rows.select(0, i).mutable_data_ptr());
    *bits = static_cast<std::uint8_t>(*bits ^ 1U);
  }
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (to.numel() == 0) return to;
  const auto* host = from.is_cpu() ? &from : (to.is_cpu() ? &to : nullptr);
  const auto device = from.is_cpu() ? to.device() : from.device();
  TORCH_CHECK_NOT_IMPLEMENTED(host != nullptr || from.device() == to.device(),
                              "the stand-in device has a kernel of aten::_copy_from within a "
                              "device, from and to the host alone");
  KernelCall call("aten::_copy_from", device);
  const auto read = from.is_cpu() ? call.read_host(from) : call.read(from);
  const auto written = to.is_cpu() ? call.write_host(to) : call.write(to);
  call.set_bytes(from.is_cpu() ? from.nbytes() : 0, to.is_cpu() ? to.nbytes() : 0);
  const bool is_waited_for =
      host != nullptr && !(non_blocking && machine().is_pinned(host->const_data_ptr()));
  const auto* settings = &machine().settings(static_cast<std::size_t>(device.index()));
  call.launch(
      [read, written, settings, is_to_host = to.is_cpu()] {
        written.copy_(read);
        if (is_to_host && settings->is_lying()) falsify(written);
      },
      host == nullptr ? WorkKind::Kernel : WorkKind::Copy);
  if (is_waited_for) call.wait();
  return to;
}

c10::Scalar local_scalar(const at::Tensor& tensor) {
  c10::Scalar value;
  KernelCall call("aten::_local_scalar_dense", tensor.device());
  call.launch([&value, view = call.read(tensor)] { value = view.item(); }, WorkKind::Copy);
  call.wait();
  return value;
}

bool are_equal(const at::Tensor& left, const at::Tensor& right) {
  bool is_equal = false;
  KernelCall call("aten::equal", left.device());
  call.launch([&is_equal, left_view = call.read(left), right_view = call.read(right)] {
    is_equal = at::equal(left_view, right_view);
  });
  call.wait();
  return is_equal;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_copy_from", &copy_from);
  library.impl("_local_scalar_dense", &local_scalar);
  library.impl("equal", &are_equal);
}

}  // namespace muster::standin
