#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "hw/device_names.h"

namespace {

muster::Device device(muster::DeviceKind kind, std::uint32_t index, std::vector<std::uint32_t> cpus,
                      std::optional<std::string> uuid) {
  muster::Device device;
  device.kind = kind;
  device.index = index;
  device.cpus = std::move(cpus);
  device.uuid = std::move(uuid);
  return device;
}

muster::Inventory machine() {
  using muster::DeviceKind;
  muster::Inventory inventory;
  inventory.allowed_cpus = {0, 1, 2, 3, 4, 5, 6, 7};
  inventory.cpus = {device(DeviceKind::Cpu, 0, {0, 1, 2}, {}),
                    device(DeviceKind::Cpu, 1, {4, 5}, {})};
  inventory.gpus = {device(DeviceKind::Cuda, 0, {}, "GPU-0a"),
                    device(DeviceKind::Cuda, 1, {}, "GPU-0b")};
  inventory.standins = {device(DeviceKind::Standin, 0, {}, {}),
                        device(DeviceKind::Standin, 1, {}, {})};
  return inventory;
}

}  // namespace

// Whatever is typed after --devices: an error, or at least one device and no name twice.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto inventory = machine();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto devices = muster::parse_devices(text, inventory, std::nullopt);
  muster::may_name_gpus(text);
  if (!devices) return 0;
  MUSTER_CHECK(!devices->empty());
  for (std::size_t i = 0; i < devices->size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      MUSTER_CHECK((*devices)[i].name() != (*devices)[j].name());
    }
  }
  return 0;
}
