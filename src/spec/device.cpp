#include "spec/device.h"

#include <fmt/format.h>

namespace muster {

std::string_view device_kind_name(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::Cpu:
      return "cpu";
    case DeviceKind::Cuda:
      return "cuda";
    case DeviceKind::Rocm:
      return "rocm";
    case DeviceKind::Mps:
      return "mps";
    case DeviceKind::Simulated:
      return "sim";
    case DeviceKind::Standin:
      return "standin";
  }
  return "?";
}

bool runs_as_gpu(DeviceKind kind) {
  return kind == DeviceKind::Cuda || kind == DeviceKind::Standin;
}

// This form is read back from flags and shown in answers, so it is part of the interface.
std::string Device::name() const {
  const auto whole = fmt::format("{}:{}", device_kind_name(kind), index);
  return slice ? fmt::format("{}:{}", whole, *slice) : whole;
}

}  // namespace muster
