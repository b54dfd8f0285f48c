#include "telemetry/device_faults.h"

#include <gtest/gtest.h>

#include "telemetry/health.h"

namespace muster {
namespace {

class DeviceFaultsTest : public testing::Test {
 protected:
  static constexpr double kUnix = 10'000;

  DeviceFaultsTest() {
    snapshot_.devices.resize(3);
    identity(0).device.kind = identity(1).device.kind = DeviceKind::Cuda;
    identity(0).device.uuid = "GPU-a";
    identity(1).device.uuid = "GPU-b";
    identity(2).device.kind = DeviceKind::Cpu;
    for (auto& status : snapshot_.devices) status.is_up = true;
  }

  DeviceIdentity& identity(std::size_t device) { return snapshot_.devices[device].identity; }

  static Device gpu(const std::string& uuid) {
    Device device;
    device.kind = DeviceKind::Cuda;
    device.uuid = uuid;
    return device;
  }

  void report_xid(std::size_t device, std::uint32_t code) {
    auto& xid = snapshot_.devices[device].xids[code];
    ++xid.count;
    xid.last_unix_seconds = kUnix;
  }

  // "1 fault; 0 over; " for what has changed.
  std::string look(DeviceFaults& faults) {
    for (auto& status : snapshot_.devices) status.health = judge(status, kUnix);
    std::string text;
    for (const auto& [device, fault] : faults.changes(snapshot_)) {
      text += std::to_string(device) + " " + fault.value_or("over") + "; ";
    }
    return text;
  }

  TelemetrySnapshot snapshot_;
};

TEST_F(DeviceFaultsTest, AnXidThatMeansDamageIsOneAndIsToldOnce) {
  DeviceFaults faults({gpu("GPU-b"), gpu("GPU-a"), Device{}});
  EXPECT_EQ(look(faults), "");
  report_xid(0, 31);  // an application's fault
  report_xid(0, 94);  // contained: the application alone has lost its data
  EXPECT_EQ(look(faults), "");
  report_xid(1, 79);
  EXPECT_EQ(look(faults), "0 the driver reported XID 79 (1 times); ");
  EXPECT_EQ(look(faults), "");
  snapshot_.devices[1].xids.clear();
  EXPECT_EQ(look(faults), "0 over; ");
}

TEST_F(DeviceFaultsTest, MemoryErrorsCountFromTheFirstLookOn) {
  auto& readings = snapshot_.devices[0].readings;
  readings.set(Reading::GpuEccUncorrectedVolatile, 2);
  DeviceFaults faults({gpu("GPU-a")});
  EXPECT_EQ(look(faults), "") << "older than this program";
  readings.set(Reading::GpuEccUncorrectedVolatile, 3);
  EXPECT_EQ(look(faults), "0 uncorrected memory errors since the driver was loaded: 3; ");
}

TEST_F(DeviceFaultsTest, AFaultIsNotOverBecauseADeviceIsSilent) {
  auto& status = snapshot_.devices[0];
  status.readings.set(Reading::GpuRecoveryAction, 1);
  DeviceFaults faults({gpu("GPU-a")});
  EXPECT_EQ(look(faults), "0 the driver asks to reset the GPU; ");
  status.readings = {};
  EXPECT_EQ(look(faults), "") << "the reading is missing";
  status.is_up = false;
  EXPECT_EQ(look(faults), "");
  status.is_up = true;
  status.readings.set(Reading::GpuRecoveryAction, 0);
  EXPECT_EQ(look(faults), "0 over; ");
}

TEST_F(DeviceFaultsTest, ASliceHasTheFaultsOfItsGpu) {
  auto slice = snapshot_.devices[1];
  slice.identity.parent = "GPU-b";
  slice.identity.device.uuid = "MIG-c";
  snapshot_.devices.push_back(slice);
  DeviceFaults faults({gpu("MIG-c")});
  report_xid(1, 48);
  EXPECT_EQ(look(faults), "0 the driver reported XID 48 (1 times); ");
}

TEST_F(DeviceFaultsTest, ADeviceThatIsDownOrNotWatchedHasNoFaultByThat) {
  DeviceFaults faults({gpu("GPU-a"), gpu("GPU-other")});
  snapshot_.devices[0].is_up = false;
  snapshot_.devices[0].down_reason = "hung in a call";
  EXPECT_EQ(look(faults), "");
}

}  // namespace
}  // namespace muster
