// The operators that write into a tensor which is there already: torch has made it from the shapes
// alone. Each is listed by name; its CPU kernel is called with the device's views of its tensors,
// in the stream. What is not listed is refused by name: a fallback that copies to the host unseen
// would hide the very fault that the device is for.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/library.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "standin/torch/kernel_call.h"

namespace muster::standin {
namespace {

using torch::jit::Stack;

std::string name_of(const c10::OperatorHandle& op) { return c10::toString(op.operator_name()); }

// The device of the first tensor that is on one.
c10::Device device_of(const Stack& arguments, const c10::OperatorHandle& op) {
  for (const auto& argument : arguments) {
    if (argument.isTensor() && argument.toTensor().is_privateuseone()) {
      return argument.toTensor().device();
    }
  }
  TORCH_CHECK(false, name_of(op), " has no tensor on a stand-in device");
}

// A number that became a tensor of the host. It is made again where it is used, so that a stream
// never frees memory that another thread took (engine/memory_use.h counts by thread).
struct HostNumber {
  std::size_t place = 0;
  c10::Scalar value;
  c10::ScalarType type = c10::ScalarType::Undefined;
  bool is_wrapped = false;  // it was no tensor, so it does not decide the type of the result
};

std::optional<HostNumber> host_number(const c10::IValue& argument, std::size_t place) {
  if (!argument.isTensor()) return std::nullopt;
  const auto& tensor = argument.toTensor();
  if (!tensor.defined() || !tensor.is_cpu() || tensor.dim() != 0) return std::nullopt;
  return HostNumber{place, tensor.item(), tensor.scalar_type(),
                    tensor.unsafeGetTensorImpl()->is_wrapped_number()};
}

at::Tensor tensor_of(const HostNumber& number) {
  auto tensor = at::scalar_tensor(number.value, number.type);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(number.is_wrapped);
  return tensor;
}

c10::IValue view_of(KernelCall& call, const c10::IValue& argument, bool is_write) {
  if (argument.isTensor()) {
    return is_write ? call.write(argument.toTensor()) : call.read(argument.toTensor());
  }
  if (argument.isTensorList()) {
    c10::List<at::Tensor> views;
    for (const at::Tensor& tensor : argument.toTensorVector()) views.push_back(call.read(tensor));
    return views;
  }
  return argument;
}

// Every operator of the list returns the one tensor that it writes.
void launch_listed(const c10::OperatorHandle& op, Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const auto given = torch::jit::last(*stack, arguments.size()).vec();
  KernelCall call(name_of(op), device_of(given, op));
  Stack views;
  std::vector<HostNumber> numbers;
  at::Tensor written;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (auto number = host_number(given[i], i)) {
      numbers.push_back(*std::move(number));
      views.emplace_back();
      continue;
    }
    const auto* alias = arguments[i].alias_info();
    const bool is_write = alias != nullptr && alias->isWrite();
    views.push_back(view_of(call, given[i], is_write));
    if (is_write) written = given[i].toTensor();
  }
  if (written.numel() > 0) {
    call.launch([op, views = std::move(views), numbers = std::move(numbers)] {
      auto own = views;  // the operator takes its arguments off the stack
      for (const auto& number : numbers) own[number.place] = tensor_of(number);
      op.callBoxed(&own);
    });
  }
  torch::jit::drop(*stack, arguments.size());
  torch::jit::push(*stack, written);
}

void refuse(const c10::OperatorHandle& op, Stack* /*stack*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "the stand-in device has no kernel of ", name_of(op));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  for (const auto* name :
       {"add.out", "addmm.out", "cat.out", "clamp.out", "clamp_max.out", "fill_.Scalar",
        "index_select.out", "mm.out", "mul.out", "relu_", "sub.out", "zero_"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&launch_listed>());
  }
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse>());
}

}  // namespace muster::standin
