#include "spec/machine.h"

namespace muster {

std::string MachineDevice::name() const {
  return std::string(device_kind_name(kind)) + ":" + std::to_string(index);
}

}  // namespace muster
