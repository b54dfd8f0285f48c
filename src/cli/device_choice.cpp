#include "cli/device_choice.h"

#include "hw/device_names.h"

namespace muster {

Result<std::vector<Device>> chosen_devices(const Config& config, const std::string& names,
                                           const Inventory& inventory) {
  auto devices =
      MUSTER_TRY(parse_devices(names, inventory, config.count(SettingId::CoresPerDevice)));
  const auto most = config.count(SettingId::DeviceCountMost);
  if (most && *most < devices.size()) devices.resize(*most);
  return devices;
}

}  // namespace muster
