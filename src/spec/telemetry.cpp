#include "spec/telemetry.h"

#include <algorithm>

namespace muster {

std::string shown_name(const DeviceIdentity& identity, const std::vector<DeviceIdentity>& all) {
  if (!identity.parent) return identity.device.name();
  const auto parent = std::find_if(all.begin(), all.end(), [&](const DeviceIdentity& other) {
    return !other.parent && other.device.uuid == identity.parent;
  });
  const auto gpu = parent == all.end() ? identity.parent.value() : parent->device.name();
  return gpu + ":" + std::to_string(identity.device.index);
}

}  // namespace muster
