#include "coordinator/worker_process.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "spec/standin_device.h"

namespace muster {
namespace {

using Variables = std::vector<std::string>;

Device gpu(std::uint32_t index) {
  Device device;
  device.kind = DeviceKind::Cuda;
  device.index = index;
  return device;
}

TEST(VariablesOf, NameAGpuByItsUuid) {
  auto device = gpu(3);
  device.uuid = "GPU-a";
  EXPECT_EQ(variables_of(device), Variables{"CUDA_VISIBLE_DEVICES=GPU-a"});
}

// Without any variable its worker would compute on the first GPU, beside the one that has it.
TEST(VariablesOf, NameAGpuWithoutUuidByItsNumberInPciOrder) {
  EXPECT_EQ(variables_of(gpu(3)),
            (Variables{"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=3"}));
}

TEST(VariablesOf, NameAStandInByItsNumberAndACpuByNothing) {
  Device device;
  EXPECT_EQ(variables_of(device), Variables{});
  device.kind = DeviceKind::Standin;
  device.index = 1;
  EXPECT_EQ(variables_of(device), Variables{std::string(kStandinVisibleVariable) + "=1"});
}

}  // namespace
}  // namespace muster
