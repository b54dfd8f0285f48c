#include "spec/machine.h"

#include <algorithm>

namespace muster {

std::string MachineDevice::name() const {
  return std::string(device_kind_name(kind)) + ":" + std::to_string(index);
}

bool computes_on_gpus(const Machine& machine) {
  return machine.devices.empty() ||
         std::any_of(machine.devices.begin(), machine.devices.end(),
                     [](const auto& device) { return device.kind != DeviceKind::Cpu; });
}

}  // namespace muster
