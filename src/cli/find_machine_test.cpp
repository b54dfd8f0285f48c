#include "cli/find_machine.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

DeviceIdentity nameless(std::uint32_t index, std::optional<std::uint32_t> ordinal) {
  auto identity = gpu(index, "", ordinal);
  identity.device.uuid.reset();
  identity.device.pci_address = "00000000:0" + std::to_string(index + 1) + ":00.0";
  return identity;
}

TEST(DevicesForWork, TakesOneWithoutUuidWhereItsNumberIsCertain) {
  WatchedMachine machine;
  machine.devices = {nameless(0, 0), nameless(1, 1), DeviceIdentity{}};
  for (const auto& device : devices_for_work(machine, std::nullopt)) {
    EXPECT_EQ(device.hidden_by, "") << device.name();
  }
}

// The first one is lost: CUDA counts the second as its first, or not, by when it was lost.
TEST(DevicesForWork, RefusesOneWithoutUuidWhereItsNumberIsNot) {
  const auto is_refused = [](const WatchedMachine& machine, std::size_t index,
                             const std::optional<std::string>& visible = std::nullopt) {
    return devices_for_work(machine, visible).at(index).hidden_by.find("no UUID") !=
           std::string::npos;
  };
  WatchedMachine one_is_lost;
  one_is_lost.devices = {nameless(0, {}), nameless(1, 0)};
  EXPECT_TRUE(is_refused(one_is_lost, 0));
  EXPECT_TRUE(is_refused(one_is_lost, 1));

  one_is_lost.devices[1].device.uuid = "GPU-b";
  EXPECT_TRUE(is_refused(one_is_lost, 0));
  EXPECT_FALSE(is_refused(one_is_lost, 1)) << "its UUID names it";

  WatchedMachine one_is_split;
  one_is_split.devices = {nameless(0, 0), gpu(1, "GPU-b", {}), slice(0, "MIG-x", "GPU-b")};
  EXPECT_TRUE(is_refused(one_is_split, 0));

  WatchedMachine without_places;
  without_places.devices = {nameless(0, 0), nameless(1, 1)};
  without_places.devices[1].device.pci_address.reset();
  EXPECT_TRUE(is_refused(without_places, 0));

  WatchedMachine one_is_hidden;
  one_is_hidden.devices = {nameless(0, {}), nameless(1, 0)};
  EXPECT_TRUE(is_refused(one_is_hidden, 1, "1")) << "whether the other is there is not known";
}

}  // namespace
}  // namespace muster
