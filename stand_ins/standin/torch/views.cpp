// Tensors without computing: new ones, and the same memory seen in another shape. torch's own code
// for the CPU serves, as it looks at no element.

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/accumulate.h>
#include <torch/library.h>

#include "standin/torch/devices.h"

namespace muster::standin {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

void check_options(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(c10::layout_or_default(layout) == c10::Layout::Strided,
                              "the stand-in device has strided tensors alone (aten::empty)");
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "only memory of the host can be pinned");
}

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                 std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> format) {
  check_options(layout, pin_memory);
  const c10::DeviceGuard guard(c10::device_or_default(device));
  return at::detail::empty_generic(size, c10::GetAllocator(c10::DeviceType::PrivateUse1), kKeys,
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                         std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  const c10::DeviceGuard guard(c10::device_or_default(device));
  return at::detail::empty_strided_generic(size, stride,
                                           c10::GetAllocator(c10::DeviceType::PrivateUse1), kKeys,
                                           c10::dtype_or_default(dtype));
}

// torch's own moves what the tensor had by the host, so it may only grow from nothing.
const at::Tensor& resize(const at::Tensor& tensor, c10::IntArrayRef size,
                         std::optional<c10::MemoryFormat> format) {
  const auto bytes = tensor.storage().nbytes();
  const auto places = tensor.storage_offset() + c10::multiply_integers(size);
  const bool has_room = static_cast<std::size_t>(places) * tensor.itemsize() <= bytes;
  TORCH_CHECK_NOT_IMPLEMENTED(
      has_room || bytes == 0,
      "the stand-in device has a kernel of aten::resize_ for tensors without elements alone");
  return at::native::resize_(tensor, size, format);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("unfold", &at::native::unfold);
  library.impl("resize_", &resize);
}

}  // namespace muster::standin
