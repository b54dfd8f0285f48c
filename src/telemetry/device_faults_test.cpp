#include "telemetry/device_faults.h"

#include <gtest/gtest.h>

#include "telemetry/health.h"

namespace muster {
namespace {

class DeviceFaultsTest : public testing::Test {
 protected:
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
    xid.last_unix_seconds = now_;
  }

  // "1 fault; 0 over; " for what has changed.
  std::string look(DeviceFaults& faults) {
    snapshot_.unix_seconds = now_;
    for (auto& status : snapshot_.devices) status.health = judge(status, now_);
    std::string text;
    for (const auto& [device, fault] : faults.changes(snapshot_)) {
      text += std::to_string(device) + " " + fault.value_or("over") + "; ";
    }
    return text;
  }

  TelemetrySnapshot snapshot_;
  double now_ = 10'000;  // Unix time
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

// A counter that falls began at zero again: the GPU was reset, and is watched as a new one.
TEST_F(DeviceFaultsTest, MemoryErrorsAfterAResetCountFromZero) {
  auto& readings = snapshot_.devices[0].readings;
  readings.set(Reading::GpuEccUncorrectedVolatile, 2);
  DeviceFaults faults({gpu("GPU-a")});
  EXPECT_EQ(look(faults), "");
  readings.set(Reading::GpuEccUncorrectedVolatile, 0);
  EXPECT_EQ(look(faults), "");
  readings.set(Reading::GpuEccUncorrectedVolatile, 1);
  EXPECT_EQ(look(faults), "0 uncorrected memory errors since the driver was loaded: 1; ");
  readings.set(Reading::GpuEccUncorrectedVolatile, 3);
  EXPECT_EQ(look(faults), "0 uncorrected memory errors since the driver was loaded: 3; ");
  readings.clear(Reading::GpuEccUncorrectedVolatile);
  EXPECT_EQ(look(faults), "") << "missing while it is reset";
  readings.set(Reading::GpuEccUncorrectedVolatile, 2);
  EXPECT_EQ(look(faults), "0 uncorrected memory errors since the driver was loaded: 2; ")
      << "two since a reset that came between two looks";
  readings.set(Reading::GpuEccUncorrectedVolatile, 0);
  EXPECT_EQ(look(faults), "0 over; ");
}

// XID 94: the process that had the memory has ended, and the rest of the GPU and its slices go on.
// The counter stays until a reset all the same.
TEST_F(DeviceFaultsTest, ADriverThatTellsWhatRecoveryItAsksForDecidesOnMemoryErrors) {
  auto& readings = snapshot_.devices[0].readings;
  readings.set(Reading::GpuRecoveryAction, 0);
  readings.set(Reading::GpuEccUncorrectedVolatile, 0);
  DeviceFaults faults({gpu("GPU-a")});
  EXPECT_EQ(look(faults), "");
  report_xid(0, 94);
  readings.set(Reading::GpuEccUncorrectedVolatile, 1);
  EXPECT_EQ(look(faults), "");
  readings.clear(Reading::GpuRecoveryAction);
  EXPECT_EQ(look(faults), "") << "missing for a moment";
  readings.set(Reading::GpuRecoveryAction, 4);
  EXPECT_EQ(look(faults), "0 the driver asks to drain the GPU and reset it; ");
  readings.set(Reading::GpuRecoveryAction, 0);
  EXPECT_EQ(look(faults), "0 over; ");
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

// Who started the device in spite of a fault knows what was told: less of it is no reason to stop
// it again. An XID counts for an hour.
TEST_F(DeviceFaultsTest, AFaultOfWhichAPartIsOverIsNoNews) {
  auto& readings = snapshot_.devices[0].readings;
  readings.set(Reading::GpuEccUncorrectedVolatile, 0);
  DeviceFaults faults({gpu("GPU-a")});
  EXPECT_EQ(look(faults), "");
  report_xid(0, 48);
  readings.set(Reading::GpuEccUncorrectedVolatile, 1);
  EXPECT_EQ(look(faults),
            "0 the driver reported XID 48 (1 times); uncorrected memory errors since the driver "
            "was loaded: 1; ");
  now_ += 3601;
  EXPECT_EQ(look(faults), "") << "the XID has expired";
  readings.set(Reading::GpuEccUncorrectedVolatile, 0);
  EXPECT_EQ(look(faults), "0 over; ");
  report_xid(0, 48);
  EXPECT_EQ(look(faults), "0 the driver reported XID 48 (2 times); ") << "what is over may return";
}

TEST_F(DeviceFaultsTest, OneOfTwoXidsThatExpiresOrOneThatOnlyWarnsIsNoNews) {
  DeviceFaults faults({gpu("GPU-a")});
  report_xid(0, 48);
  EXPECT_EQ(look(faults), "0 the driver reported XID 48 (1 times); ");
  now_ += 1800;
  report_xid(0, 79);
  EXPECT_EQ(look(faults), "0 the driver reported XID 48 (1 times), 79 (1 times); ");
  now_ += 1801;
  EXPECT_EQ(look(faults), "") << "48 has expired";
  report_xid(0, 94);
  EXPECT_EQ(look(faults), "") << "a warning";
  report_xid(0, 79);
  EXPECT_EQ(look(faults), "0 the driver reported XID 79 (2 times), 94 (1 times); ");
}

TEST_F(DeviceFaultsTest, AReadingThatIsMissingForAMomentIsNoNewsWhenItIsBack) {
  auto& status = snapshot_.devices[0];
  status.readings.set(Reading::GpuRecoveryAction, 0);
  DeviceFaults faults({gpu("GPU-a")});
  EXPECT_EQ(look(faults), "");
  report_xid(0, 79);
  status.readings.set(Reading::GpuRecoveryAction, 2);
  const auto told = status.readings;
  EXPECT_EQ(look(faults),
            "0 the driver reported XID 79 (1 times); the driver asks to restart the machine; ");
  status.readings = {};
  status.is_up = false;
  EXPECT_EQ(look(faults), "");
  status.is_up = true;
  EXPECT_EQ(look(faults), "") << "up, and not read yet";
  status.readings = told;
  EXPECT_EQ(look(faults), "");
}

// Memory errors are read every ten seconds, so they are known later than the XID that was for them.
TEST_F(DeviceFaultsTest, MemoryErrorsThatAnXidWasForAreNoNews) {
  auto& readings = snapshot_.devices[0].readings;
  readings.set(Reading::GpuEccUncorrectedVolatile, 0);
  DeviceFaults faults({gpu("GPU-a")});
  EXPECT_EQ(look(faults), "");
  report_xid(0, 48);
  EXPECT_EQ(look(faults), "0 the driver reported XID 48 (1 times); ");
  readings.set(Reading::GpuEccUncorrectedVolatile, 1);
  EXPECT_EQ(look(faults), "");
  now_ += 3601;
  EXPECT_EQ(look(faults), "") << "the XID has expired";
  readings.set(Reading::GpuEccUncorrectedVolatile, 2);
  EXPECT_EQ(look(faults), "0 uncorrected memory errors since the driver was loaded: 2; ")
      << "another one, without an XID";
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
