#include "cli/find_machine.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

DeviceIdentity gpu(std::uint32_t index, const char* uuid, std::optional<std::uint32_t> ordinal) {
  DeviceIdentity identity;
  identity.device.kind = DeviceKind::Cuda;
  identity.device.index = index;
  identity.device.uuid = uuid;
  identity.cuda_ordinal = ordinal;
  return identity;
}

DeviceIdentity slice(std::uint32_t number, const char* uuid, const char* parent) {
  auto identity = gpu(number, uuid, std::nullopt);
  identity.parent = parent;
  return identity;
}

std::string names(const std::vector<Device>& devices) {
  std::string text;
  for (const auto& device : devices) {
    text += (text.empty() ? "" : " ") + device.name() + "=" + device.uuid.value_or("-");
  }
  return text;
}

TEST(DevicesForWork, TakesSlicesInsteadOfTheirGpu) {
  WatchedMachine machine;
  machine.devices = {gpu(0, "GPU-a", 0), gpu(1, "GPU-b", {}), slice(0, "MIG-x", "GPU-b"),
                     slice(1, "MIG-y", "GPU-b"), DeviceIdentity{}};
  EXPECT_EQ(names(devices_for_work(machine, std::nullopt)),
            "cuda:0=GPU-a cuda:1:0=MIG-x cuda:1:1=MIG-y")
      << "the CPU is none";
}

TEST(DevicesForWork, MarksWhatIsHidden) {
  WatchedMachine machine;
  machine.devices = {gpu(0, "GPU-a", {}), gpu(1, "GPU-b", 0)};
  const auto devices = devices_for_work(machine, "1");
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].hidden_by, "CUDA_VISIBLE_DEVICES=1");
  EXPECT_EQ(devices[1].hidden_by, "");
}

}  // namespace
}  // namespace muster
