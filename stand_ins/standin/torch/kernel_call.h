#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "standin/torch/devices.h"

namespace muster::standin {

/// One operator on its way to a stream: first its tensors as kernels see them, then the launch.
///
/// A view is a tensor on the CPU over the memory that the device has of it, so that torch's own CPU
/// kernels compute with it, in the stream's thread. Tensors of other devices and of the host are
/// refused, as CUDA refuses them.
class KernelCall {
 public:
  /// name: "aten::addmm.out"; device: that of its tensors.
  KernelCall(std::string name, c10::Device device);

  /// Undefined where the tensor is.
  at::Tensor read(const at::Tensor& tensor);
  at::Tensor write(const at::Tensor& tensor);
  /// Of a copy: pinned memory by its second address too, and ordinary memory of the host as it is.
  at::Tensor read_host(const at::Tensor& tensor);
  at::Tensor write_host(const at::Tensor& tensor);

  /// Bytes that cross between host and device by it.
  void set_bytes(std::uint64_t to_device, std::uint64_t to_host);

  /// Gives it to the current stream of the device. `work` computes with views alone.
  void launch(std::function<void()> work, WorkKind kind = WorkKind::Kernel);

  /// Waits for that stream.
  void wait() const;

 private:
  at::Tensor view(const at::Tensor& tensor, bool is_write);

  Launch launch_;
};

}  // namespace muster::standin
