#include "standin/torch/kernel_call.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <stdexcept>
#include <utility>

namespace muster::standin {
namespace {

// A stream computes in its own thread alone: a sum that is split among threads depends on how many
// there are.
void compute_alone(const std::function<void()>& work) {
  thread_local const bool is_alone = [] {
    at::set_num_threads(1);
    return true;
  }();
  static_cast<void>(is_alone);
  const c10::InferenceMode no_gradients;
  try {
    work();
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

}  // namespace

KernelCall::KernelCall(std::string name, c10::Device device) {
  const auto index =
      device.has_index() ? static_cast<std::size_t>(device.index()) : current_place().device;
  launch_.place = current_place_of(index);
  launch_.operation = std::move(name);
}

at::Tensor KernelCall::view(const at::Tensor& tensor, bool is_write) {
  const void* address = tensor.const_data_ptr();
  launch_.uses.push_back({address, is_write});
  return at::from_blob(machine().kernel_address(address), tensor.sizes(), tensor.strides(),
                       at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCPU));
}

at::Tensor KernelCall::read(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  TORCH_CHECK(tensor.is_privateuseone(), launch_.operation, " on standin:", launch_.place.device,
              " reads a tensor that is on ", tensor.device());
  return view(tensor, false);
}

at::Tensor KernelCall::write(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  TORCH_CHECK(tensor.is_privateuseone(), launch_.operation, " on standin:", launch_.place.device,
              " writes a tensor that is on ", tensor.device());
  return view(tensor, true);
}

at::Tensor KernelCall::read_host(const at::Tensor& tensor) { return view(tensor, false); }
at::Tensor KernelCall::write_host(const at::Tensor& tensor) { return view(tensor, true); }

void KernelCall::set_bytes(std::uint64_t to_device, std::uint64_t to_host) {
  launch_.bytes_to_device = to_device;
  launch_.bytes_to_host = to_host;
}

void KernelCall::launch(std::function<void()> work, WorkKind kind) {
  launch_.kind = kind;
  launch_.work = [work = std::move(work)] { compute_alone(work); };
  check(machine().launch(launch_), launch_.place.device);
}

void KernelCall::wait() const { check(machine().wait(launch_.place), launch_.place.device); }

}  // namespace muster::standin
