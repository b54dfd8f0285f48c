#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "fake_nvml/nvml_abi.h"

// The library as its users have it: opened at run time, asked by name.

namespace muster::fake_nvml {
namespace {

namespace fs = std::filesystem;

class FakeLibrary {
 public:
  explicit FakeLibrary(const std::string& name = "libfakenvml.so")
      : library_(dlopen((std::string(MUSTER_BINARY_DIR "/lib/") + name).c_str(), RTLD_NOW)) {}
  FakeLibrary(const FakeLibrary&) = delete;
  ~FakeLibrary() {
    if (library_ == nullptr) return;
    call("nvmlShutdown");
    dlclose(library_);
  }

  bool is_open() const { return library_ != nullptr; }
  bool has(const char* name) const { return dlsym(library_, name) != nullptr; }

  template <typename... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    if (function == nullptr) {
      ADD_FAILURE() << name << " is missing";
      return kUnknown;
    }
    return function(arguments...);
  }

  int init(const std::string& scenario) const {
    static int number = 0;
    const auto file = fs::path(testing::TempDir()) /
                      ("fakenvml-" + std::to_string(getpid()) + "-" + std::to_string(++number));
    std::ofstream(file) << scenario;
    setenv("FAKENVML_SCENARIO", file.c_str(), 1);
    set_time(0);
    const int code = call("nvmlInit_v2");
    unsetenv("FAKENVML_SCENARIO");
    fs::remove(file);
    return code;
  }

  void set_time(double seconds) const {
    const auto function =
        reinterpret_cast<void (*)(std::uint64_t)>(dlsym(library_, "fakenvml_set_time_ns"));
    function(static_cast<std::uint64_t>(std::llround(seconds * 1e9)));
  }

  std::uint64_t calls_of(const char* name) const {
    const auto function =
        reinterpret_cast<std::uint64_t (*)(const char*)>(dlsym(library_, "fakenvml_call_count"));
    return function(name);
  }

  double true_joules(unsigned gpu, double from, double until) const {
    const auto function = reinterpret_cast<double (*)(unsigned, double, double)>(
        dlsym(library_, "fakenvml_true_energy_joules"));
    return function(gpu, from, until);
  }

  DeviceHandle gpu(unsigned index) const {
    DeviceHandle handle = nullptr;
    EXPECT_EQ(call("nvmlDeviceGetHandleByIndex_v2", index, &handle), kSuccess);
    return handle;
  }

  unsigned number(const char* name, DeviceHandle device) const {
    unsigned out = 0;
    EXPECT_EQ(call(name, device, &out), kSuccess) << name;
    return out;
  }

  FieldValue field(DeviceHandle device, unsigned id, unsigned scope = 0) const {
    FieldValue value{};
    value.field = id;
    value.scope = scope;
    EXPECT_EQ(call("nvmlDeviceGetFieldValues", device, 1, &value), kSuccess);
    return value;
  }

  std::uint64_t energy_mj(DeviceHandle device) const {
    std::uint64_t out = 0;
    EXPECT_EQ(call("nvmlDeviceGetTotalEnergyConsumption", device, &out), kSuccess);
    return out;
  }

 private:
  void* library_;
};

std::string stepped(const std::string& gpus, const std::string& more = "") {
  return R"({"fake_nvml": 1, "clock": "stepped", )" + more + R"("gpus": )" + gpus + "}";
}

TEST(FakeNvml, WithoutAScenarioItIsTheIdleH200OfThePublicCapture) {
  const FakeLibrary library;
  ASSERT_TRUE(library.is_open()) << dlerror();
  ASSERT_EQ(library.call("nvmlInit_v2"), kSuccess);
  const auto gpu = library.gpu(0);
  EXPECT_EQ(library.number("nvmlDeviceGetPowerUsage", gpu), 77'700U);
  EXPECT_EQ(library.field(gpu, 82).value.as_unsigned, 32U);
  MemoryV2 memory{};
  memory.version = version_of<MemoryV2>(2);
  ASSERT_EQ(library.call("nvmlDeviceGetMemoryInfo_v2", gpu, &memory), kSuccess);
  EXPECT_EQ(memory.total, 150'754'820'096U);
  EXPECT_EQ(memory.reserved, 643'825'664U);
  char driver[80] = {};
  ASSERT_EQ(library.call("nvmlSystemGetDriverVersion", &driver[0], 80U), kSuccess);
  EXPECT_STREQ(driver, "590.48.01");
}

TEST(FakeNvml, TheEnergyCounterIsTheIntegralOfTruePowerAtItsLastRefresh) {
  const FakeLibrary library;
  // 100 W idle, 500 W loaded, one second each; refreshed 30 ms after each tenth.
  ASSERT_EQ(library.init(stepped(R"([{"idle_watts": 100, "load_watts": 500, "refresh_phase_s": 0.03,
      "load": {"square": {"period": 2, "low": 0, "high": 1}}}])")),
            kSuccess);
  const auto gpu = library.gpu(0);
  library.set_time(0.129);
  EXPECT_EQ(library.energy_mj(gpu), 15'000U);  // 0.03 s x 500 W
  library.set_time(0.13);
  EXPECT_EQ(library.energy_mj(gpu), 65'000U);  // 0.13 s x 500 W
  library.set_time(2.5);
  // The last refresh was at 2.43 s: 1.43 s at 500 W and 1 s at 100 W.
  EXPECT_EQ(library.energy_mj(gpu), 815'000U);
  EXPECT_EQ(library.field(gpu, 83).value.as_unsigned_long_long, 815'000U);
  EXPECT_DOUBLE_EQ(library.true_joules(0, 0.5, 2.5), 600.0);
}

TEST(FakeNvml, InstantPowerIsTheMeanOfThe25MsBeforeARefreshAndAverageThatOfASecond) {
  const FakeLibrary library;
  // Loaded from 1.09 s on: of the 25 ms before 1.1 s, 10 ms are loaded.
  ASSERT_EQ(library.init(stepped(R"([{"idle_watts": 100, "load_watts": 500,
      "load": {"steps": [[0, 0], [1.09, 1]]}}])")),
            kSuccess);
  const auto gpu = library.gpu(0);
  library.set_time(1.15);
  EXPECT_EQ(library.field(gpu, 186).value.as_unsigned, 260'000U);  // 100 + 400 x 10 / 25
  EXPECT_EQ(library.field(gpu, 185).value.as_unsigned, 104'000U);  // 100 + 400 x 0.01
  EXPECT_EQ(library.number("nvmlDeviceGetPowerUsage", gpu), 104'000U);
}

TEST(FakeNvml, GA100HasNoAveragePowerAndTellsTheInstantOne) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"model": "A100-40G", "idle_watts": 100, "load_watts": 500,
      "load": {"steps": [[0, 0], [1.09, 1]]}}])")),
            kSuccess);
  const auto gpu = library.gpu(0);
  library.set_time(1.15);
  EXPECT_EQ(library.field(gpu, 185).code, kNotSupported);
  EXPECT_EQ(library.number("nvmlDeviceGetPowerUsage", gpu), 260'000U);
}

TEST(FakeNvml, TheCounterBeginsAnewAtAResetAndIsGoneWhileMissing) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"idle_watts": 100, "energy_joules": 5000,
      "energy_resets": [2], "energy_missing": {"from": 4, "until": 5}}])")),
            kSuccess);
  const auto gpu = library.gpu(0);
  library.set_time(1);
  EXPECT_EQ(library.energy_mj(gpu), 5'100'000U);
  library.set_time(3);
  EXPECT_EQ(library.energy_mj(gpu), 100'000U);
  library.set_time(4.5);
  std::uint64_t out = 0;
  EXPECT_EQ(library.call("nvmlDeviceGetTotalEnergyConsumption", gpu, &out), kNotSupported);
  EXPECT_EQ(library.field(gpu, 83).code, kNotSupported);
}

TEST(FakeNvml, TemperatureFollowsTheLoadWithItsLag) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"temperature_lag_s": 10,
      "load": {"steps": [[0, 0], [5, 1]]}}])")),
            kSuccess);
  const auto gpu = library.gpu(0);
  unsigned celsius = 0;
  library.set_time(5);
  ASSERT_EQ(library.call("nvmlDeviceGetTemperature", gpu, 0U, &celsius), kSuccess);
  EXPECT_EQ(celsius, 28U);
  library.set_time(15);  // one time constant: 28 + 24 x (1 - 1/e) = 43.2
  ASSERT_EQ(library.call("nvmlDeviceGetTemperature", gpu, 0U, &celsius), kSuccess);
  EXPECT_EQ(celsius, 43U);
  MarginTemperature margin{version_of<MarginTemperature>(1), 0};
  ASSERT_EQ(library.call("nvmlDeviceGetMarginTemperature", gpu, &margin), kSuccess);
  EXPECT_EQ(margin.celsius, 44);  // 87 - 43
}

TEST(FakeNvml, ARepeatingLoadSettlesToThePeriodicTemperature) {
  const FakeLibrary library;
  // Half loaded in turns far shorter than the lag: midway between idle and load.
  ASSERT_EQ(
      library.init(stepped(R"([{"load": {"square": {"period": 0.02, "low": 0, "high": 1}}}])")),
      kSuccess);
  unsigned celsius = 0;
  library.set_time(1000);
  ASSERT_EQ(library.call("nvmlDeviceGetTemperature", library.gpu(0), 0U, &celsius), kSuccess);
  EXPECT_EQ(celsius, 40U);  // 28 + 24 / 2
}

TEST(FakeNvml, ThrottleTimeIsCountedAndTheReasonShownWhileItHolds) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"load": 1, "throttle": [
      {"reason": "sw_power_cap", "from": 1, "until": 3},
      {"reason": "hw_thermal", "period": 1, "duty": 0.25}]}])")),
            kSuccess);
  const auto gpu = library.gpu(0);
  const auto bits = [&] {
    std::uint64_t out = 0;
    EXPECT_EQ(library.call("nvmlDeviceGetCurrentClocksEventReasons", gpu, &out), kSuccess);
    return out;
  };
  unsigned mhz = 0;
  library.set_time(2.5);
  EXPECT_EQ(bits(), 0x4U);
  ASSERT_EQ(library.call("nvmlDeviceGetClockInfo", gpu, 1U, &mhz), kSuccess);
  EXPECT_EQ(mhz, 1683U);  // 85 % of 1980
  EXPECT_EQ(library.field(gpu, 74).value.as_unsigned_long_long, 1'500'000'000U);
  library.set_time(4.1);
  EXPECT_EQ(bits(), 0x40U);
  ASSERT_EQ(library.call("nvmlDeviceGetClockInfo", gpu, 1U, &mhz), kSuccess);
  EXPECT_EQ(mhz, 990U);
  EXPECT_EQ(library.field(gpu, 74).value.as_unsigned_long_long, 2'000'000'000U);
  EXPECT_EQ(library.field(gpu, 270).value.as_unsigned_long_long, 1'100'000'000U);
}

TEST(FakeNvml, UtilizationIsThatOfTheLastWholeSixthOfASecond) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"load": {"points": [[0, 0], [1, 1]]},
      "activity": {"memory_busy": 0.5}}])")),
            kSuccess);
  library.set_time(0.9);  // the mean from 4/6 s to 5/6 s is 0.75
  Utilization rates{};
  ASSERT_EQ(library.call("nvmlDeviceGetUtilizationRates", library.gpu(0), &rates), kSuccess);
  EXPECT_EQ(rates.gpu, 75U);
  EXPECT_EQ(rates.memory, 38U);  // 37.5
}

TEST(FakeNvml, ByteCountersAreTheLoadTimesTheTraffic) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"model": "H100-80G", "count": 2, "load": 0.5,
      "traffic": {"pcie_sent": 1e9, "nvlink_sent": 18432e6}}])")),
            kSuccess);
  const auto gpu = library.gpu(0);
  library.set_time(4);
  EXPECT_EQ(library.field(gpu, 197).value.as_unsigned_long_long, 2'000'000'000U);
  // 36,864 MB in all, in KiB; a link of 18 has 2,048 MB.
  EXPECT_EQ(library.field(gpu, 138, 0xFFFFFFFF).value.as_unsigned_long_long, 36'000'000U);
  EXPECT_EQ(library.field(gpu, 138, 3).value.as_unsigned_long_long, 2'000'000U);
  EXPECT_EQ(library.field(gpu, 138, 18).code, kNotSupported);
}

TEST(FakeNvml, XidsArriveOnceEachInTheirOrder) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"xids": [{"at": 1, "xid": 31}, {"at": 3, "xid": 79}]},
      {"xids": [{"at": 2, "xid": 13}]}])")),
            kSuccess);
  EventSetHandle set = nullptr;
  ASSERT_EQ(library.call("nvmlEventSetCreate", &set), kSuccess);
  for (unsigned i = 0; i < 2; ++i) {
    ASSERT_EQ(library.call("nvmlDeviceRegisterEvents", library.gpu(i), std::uint64_t{8}, set),
              kSuccess);
  }
  EventData data{};
  EXPECT_EQ(library.call("nvmlEventSetWait_v2", set, &data, 0U), kTimeout);
  library.set_time(3);
  std::vector<std::uint64_t> told;
  std::vector<DeviceHandle> devices;
  while (library.call("nvmlEventSetWait_v2", set, &data, 0U) == kSuccess) {
    told.push_back(data.data);
    devices.push_back(data.device);
  }
  EXPECT_EQ(told, (std::vector<std::uint64_t>{31, 13, 79}));
  EXPECT_EQ(devices, (std::vector<DeviceHandle>{library.gpu(0), library.gpu(1), library.gpu(0)}));
  EXPECT_EQ(library.call("nvmlEventSetFree", set), kSuccess);
  EXPECT_EQ(library.call("nvmlEventSetWait_v2", set, &data, 0U), kInvalidArgument);
}

TEST(FakeNvml, AHungCallComesBackWhenItsTimeIsOver) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{}, {"hang": {"from": 1, "until": 2}}])")), kSuccess);
  const auto well = library.gpu(0);
  const auto hung = library.gpu(1);
  library.set_time(1);
  const auto before = library.calls_of("nvmlDeviceGetPowerUsage");
  std::atomic<bool> is_back{false};
  std::jthread caller([&] {
    library.number("nvmlDeviceGetPowerUsage", hung);
    is_back = true;
  });
  while (library.calls_of("nvmlDeviceGetPowerUsage") == before) std::this_thread::yield();
  EXPECT_EQ(library.number("nvmlDeviceGetPowerUsage", well), 77'700U);
  EXPECT_FALSE(is_back);
  library.set_time(2);
  caller.join();
  EXPECT_TRUE(is_back);
}

TEST(FakeNvml, ALostGpuAnswersNothingElse) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"lost": {"from": 1}}, {}])")), kSuccess);
  const auto gpu = library.gpu(0);
  library.set_time(1);
  unsigned out = 0;
  EXPECT_EQ(library.call("nvmlDeviceGetPowerUsage", gpu, &out), kGpuIsLost);
  DeviceHandle handle = nullptr;
  EXPECT_EQ(library.call("nvmlDeviceGetHandleByIndex_v2", 0U, &handle), kGpuIsLost);
  EXPECT_EQ(library.call("nvmlDeviceGetPowerUsage", library.gpu(1), &out), kSuccess);
}

TEST(FakeNvml, AnErrorIsOfItsFunctionItsGpuItsFieldAndItsTimeAlone) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"errors": {"nvmlDeviceGetPowerUsage":
      {"code": "UNKNOWN", "from": 1, "until": 2}}, "field_errors": {"186": 4}}, {}])")),
            kSuccess);
  unsigned out = 0;
  library.set_time(1);
  EXPECT_EQ(library.call("nvmlDeviceGetPowerUsage", library.gpu(0), &out), kUnknown);
  EXPECT_EQ(library.call("nvmlDeviceGetPowerUsage", library.gpu(1), &out), kSuccess);
  EXPECT_EQ(library.field(library.gpu(0), 186).code, kNoPermission);
  EXPECT_EQ(library.field(library.gpu(0), 190).code, kSuccess);
  EXPECT_EQ(library.field(library.gpu(1), 186).code, kSuccess);
  library.set_time(2);
  EXPECT_EQ(library.call("nvmlDeviceGetPowerUsage", library.gpu(0), &out), kSuccess);
}

TEST(FakeNvml, AStructOfAnotherVersionIsRefused) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped("[{}]")), kSuccess);
  MemoryV2 memory{};
  memory.version = version_of<MemoryV2>(1);
  EXPECT_EQ(library.call("nvmlDeviceGetMemoryInfo_v2", library.gpu(0), &memory),
            kArgumentVersionMismatch);
  GpmSupport support{2, 0};
  EXPECT_EQ(library.call("nvmlGpmQueryDeviceSupport", library.gpu(0), &support),
            kArgumentVersionMismatch);
}

TEST(FakeNvml, MemoryOfTheFirstVersionCountsWhatIsReservedAsUsed) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"memory_bytes": 1000, "reserved_bytes": 100,
      "processes": [{"pid": 7, "memory_bytes": 300}]}])")),
            kSuccess);
  Memory memory{};
  ASSERT_EQ(library.call("nvmlDeviceGetMemoryInfo", library.gpu(0), &memory), kSuccess);
  EXPECT_EQ(memory.used, 400U);
  EXPECT_EQ(memory.free, 600U);
}

TEST(FakeNvml, SlicesHaveTheirOwnMemoryProcessesAndHoles) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"model": "H100-80G",
      "mig": [{"profile": "2g.20gb", "index": 2, "gpu_instance": 5}],
      "processes": [{"pid": 7, "memory_bytes": 300, "gpu_instance": 5, "compute_instance": 0},
                    {"pid": 8, "memory_bytes": 400, "gpu_instance": 6, "compute_instance": 0}]}])")),
            kSuccess);
  const auto gpu = library.gpu(0);
  DeviceHandle slice = nullptr;
  EXPECT_EQ(library.call("nvmlDeviceGetMigDeviceHandleByIndex", gpu, 0U, &slice), kNotFound);
  ASSERT_EQ(library.call("nvmlDeviceGetMigDeviceHandleByIndex", gpu, 2U, &slice), kSuccess);
  EXPECT_EQ(library.number("nvmlDeviceGetGpuInstanceId", slice), 5U);
  Memory memory{};
  ASSERT_EQ(library.call("nvmlDeviceGetMemoryInfo", slice, &memory), kSuccess);
  EXPECT_EQ(memory.total, 20ULL << 30);
  EXPECT_EQ(memory.used, 300U);
  DeviceHandle parent = nullptr;
  ASSERT_EQ(library.call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", slice, &parent), kSuccess);
  EXPECT_EQ(parent, gpu);
  ProcessInfoV2 entries[4] = {};
  unsigned count = 4;
  ASSERT_EQ(library.call("nvmlDeviceGetComputeRunningProcesses_v3", slice, &count, &entries[0]),
            kSuccess);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(entries[0].pid, 7U);
  Utilization rates{};
  EXPECT_EQ(library.call("nvmlDeviceGetUtilizationRates", gpu, &rates), kNotSupported);
}

TEST(FakeNvml, AProcessListThatDoesNotFitTellsHowManyThereAre) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"processes": [{"pid": 1}, {"pid": 2, "from": 5},
      {"pid": 3, "memory_bytes": null}]}])")),
            kSuccess);
  unsigned count = 0;
  ProcessInfoV2* none = nullptr;
  EXPECT_EQ(library.call("nvmlDeviceGetComputeRunningProcesses_v3", library.gpu(0), &count, none),
            kInsufficientSize);
  EXPECT_EQ(count, 2U);
  ProcessInfoV2 entries[2] = {};
  ASSERT_EQ(
      library.call("nvmlDeviceGetComputeRunningProcesses_v3", library.gpu(0), &count, &entries[0]),
      kSuccess);
  EXPECT_EQ(entries[1].pid, 3U);
  EXPECT_EQ(entries[1].used_gpu_memory, ~0ULL);
  EXPECT_EQ(entries[1].gpu_instance, 0xFFFFFFFFU);
}

TEST(FakeNvml, Drivers535FillEntriesOf32BytesWithoutTheDetailedList) {
  const FakeLibrary library("libfakenvml-535.so");
  ASSERT_TRUE(library.is_open()) << dlerror();
  EXPECT_TRUE(library.has("nvmlDeviceGetConfComputeMemSizeInfo"));
  EXPECT_FALSE(library.has("nvmlDeviceGetRunningProcessDetailList"));
  ASSERT_EQ(library.init(stepped(R"([{"processes": [{"pid": 1}, {"pid": 2}]}])")), kSuccess);
  ProcessInfo32 entries[2] = {};
  unsigned count = 2;
  ASSERT_EQ(
      library.call("nvmlDeviceGetComputeRunningProcesses_v3", library.gpu(0), &count, &entries[0]),
      kSuccess);
  EXPECT_EQ(entries[1].pid, 2U);
  EXPECT_EQ(library.field(library.gpu(0), 230).code, kNotSupported);
}

TEST(FakeNvml, Drivers450LackWhatCameLater) {
  const FakeLibrary library("libfakenvml-450.so");
  ASSERT_TRUE(library.is_open()) << dlerror();
  for (const char* name : {"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v2",
                           "nvmlGpmSampleGet", "nvmlDeviceGetCurrentClocksEventReasons"}) {
    EXPECT_FALSE(library.has(name)) << name;
  }
  ASSERT_EQ(library.init(stepped(R"([{"model": "A100-40G"}])")), kSuccess);
  EXPECT_EQ(library.field(library.gpu(0), 186).code, kNotSupported);
  EXPECT_EQ(library.field(library.gpu(0), 83).code, kSuccess);
}

TEST(FakeNvml, GpmIsTheMeanBetweenTwoLooks) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"model": "H100-80G", "load": {"points": [[0, 0], [1, 1]]},
      "activity": {"tensor": 0.5}, "traffic": {"pcie_sent": 104857600}}])")),
            kSuccess);
  const auto gpu = library.gpu(0);
  GpmMetricsGet request{};
  request.version = 1;
  request.metric_count = 3;
  ASSERT_EQ(library.call("nvmlGpmSampleAlloc", &request.sample1), kSuccess);
  ASSERT_EQ(library.call("nvmlGpmSampleAlloc", &request.sample2), kSuccess);
  request.metrics[0].metric = 5;   // any tensor
  request.metrics[1].metric = 20;  // PCIe, MiB a second
  request.metrics[2].metric = 60;  // NVLink, of which there is none
  ASSERT_EQ(library.call("nvmlGpmSampleGet", gpu, request.sample1), kSuccess);
  library.set_time(0.05);
  ASSERT_EQ(library.call("nvmlGpmSampleGet", gpu, request.sample2), kSuccess);
  EXPECT_EQ(library.call("nvmlGpmMetricsGet", &request), kInvalidArgument);  // too close
  library.set_time(0.8);
  ASSERT_EQ(library.call("nvmlGpmSampleGet", gpu, request.sample2), kSuccess);
  ASSERT_EQ(library.call("nvmlGpmMetricsGet", &request), kSuccess);
  EXPECT_DOUBLE_EQ(request.metrics[0].value, 20.0);  // mean load 0.4
  EXPECT_DOUBLE_EQ(request.metrics[1].value, 40.0);
  EXPECT_EQ(request.metrics[2].code, kNotSupported);
  EXPECT_EQ(library.call("nvmlGpmSampleFree", request.sample1), kSuccess);
  EXPECT_EQ(library.call("nvmlGpmSampleFree", request.sample2), kSuccess);
}

TEST(FakeNvml, LinksLeadToTheirPeersAndTopologyFollowsTheTree) {
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped(R"([{"model": "A100-40G", "count": 4}])",
                                 R"("nvlink": [[0, 1, 2], [0, 2, 1]], )")),
            kSuccess);
  const auto gpu = library.gpu(0);
  PciInfo pci{};
  ASSERT_EQ(library.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", gpu, 2U, &pci), kSuccess);
  EXPECT_STREQ(pci.bus_id.data(), "00000000:52:00.0");  // the third GPU
  EXPECT_EQ(library.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", gpu, 3U, &pci), kInvalidArgument);
  unsigned level = 0;
  ASSERT_EQ(library.call("nvmlDeviceGetTopologyCommonAncestor", gpu, library.gpu(1), &level),
            kSuccess);
  EXPECT_EQ(level, 10U);  // one switch
  ASSERT_EQ(library.call("nvmlDeviceGetTopologyCommonAncestor", gpu, library.gpu(2), &level),
            kSuccess);
  EXPECT_EQ(level, 50U);  // the other NUMA node
}

TEST(FakeNvml, ABrokenScenarioIsRefusedByFileAndField) {
  const struct {
    const char* text;
    const char* sentence;
  } cases[] = {
      {R"({"fake_nvml": 1, "gpus": [{"model": "H2000"}]})", "gpus[0].model: no model H2000: did "},
      {R"({"fake_nvml": 1, "gpus": [{"laod": 1}]})",
       "gpus[0]: unknown key laod: did you mean load?"},
      {R"({"fake_nvml": 1, "gpus": [{"load": 2}]})", "gpus[0].load must be a number from 0 to 1"},
      {R"({"fake_nvml": 1, "gpus": [{"load": {"points": [[1, 0], [1, 1]]}}]})",
       "gpus[0].load.points[1] must be later than the entry before it"},
      {R"({"fake_nvml": 1, "gpus": [{"errors": {"nvmlInit_v3": 1}}]})",
       "did you mean nvmlInit_v2?"},
      {R"({"fake_nvml": 1, "gpus": [{"field_delays_us": {"energy": 1}}]})",
       "gpus[0].field_delays_us must be by numbers of fields"},
      {R"({"fake_nvml": 1, "gpus": [{"field_delays_us": {"83": -1}}]})",
       "gpus[0].field_delays_us.83 must be a number from 0 to 6"},
      {R"({"fake_nvml": 1, "gpus": [{"uuid": "GPU-1"}, {"uuid": "GPU-1"}]})", "two have GPU-1"},
      {R"({"gpus": []})", "fake_nvml must be 1"},
      {R"({"fake_nvml": 1})", "gpus is missing"},
      {R"({"fake_nvml": 1, "gpus": [{"load": 1e999}]})", "a number is too large"},
      {"{\n\n!", ":3: no JSON"}};
  for (const auto& broken : cases) {
    const FakeLibrary library;
    testing::internal::CaptureStderr();
    EXPECT_EQ(library.init(broken.text), kUnknown) << broken.text;
    const auto said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(broken.sentence), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    DeviceHandle handle = nullptr;
    EXPECT_EQ(library.call("nvmlDeviceGetHandleByIndex_v2", 0U, &handle), kUninitialized);
  }
}

TEST(FakeNvml, ProcessesShareAClockAndCountsByFiles) {
  const auto folder = fs::path(testing::TempDir());
  const auto name = std::to_string(getpid());
  const auto clock_file = folder / ("clock-" + name);
  const auto statistics_file = folder / ("statistics-" + name);
  const FakeLibrary library;
  ASSERT_EQ(library.init(stepped("[{}]", R"("clock_file": ")" + clock_file.string() +
                                             R"(", "statistics_file": ")" +
                                             statistics_file.string() + R"(", )")),
            kSuccess);
  const auto gpu = library.gpu(0);
  const std::int64_t ten_seconds = 10'000'000'000;
  std::fstream(clock_file, std::ios::in | std::ios::out | std::ios::binary)
      .write(reinterpret_cast<const char*>(&ten_seconds), 8);
  EXPECT_EQ(library.energy_mj(gpu), 777'000U);
  std::ifstream file(statistics_file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  ASSERT_EQ(bytes.substr(0, 8), "FAKENVML");
  const auto row = bytes.find("nvmlDeviceGetTotalEnergyConsumption");
  ASSERT_EQ(row % 64, 16U);
  std::uint64_t calls = 0;
  std::memcpy(&calls, bytes.data() + row + 56, 8);
  EXPECT_EQ(calls, 1U);
  fs::remove(clock_file);
  fs::remove(statistics_file);
}

}  // namespace
}  // namespace muster::fake_nvml
