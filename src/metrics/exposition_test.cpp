#include "metrics/exposition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/build_info.h"
#include "metrics/families.h"
#include "metrics/snapshot_fixture.h"
#include "metrics/strict_text.h"

namespace muster {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

std::string text_of(const TelemetrySnapshot& snapshot) {
  return prometheus_text(snapshot, MetricSet::Muster);
}

std::vector<ReadSeries> series_of(const TelemetrySnapshot& snapshot, std::string_view name,
                                  MetricSet set = MetricSet::Muster) {
  auto read = read_strictly(prometheus_text(snapshot, set));
  EXPECT_EQ(read.fault, "");
  std::erase_if(read.series, [&](const ReadSeries& series) { return series.name != name; });
  return std::move(read.series);
}

std::string label_of(const ReadSeries& series, std::string_view name) {
  const auto found = std::find_if(series.labels.begin(), series.labels.end(),
                                  [&](const auto& label) { return label.first == name; });
  return found == series.labels.end() ? "" : found->second;
}

std::vector<std::string> labels_of(const std::vector<ReadSeries>& series, std::string_view name) {
  std::vector<std::string> values;
  for (const ReadSeries& one : series) values.push_back(label_of(one, name));
  return values;
}

// Everything before the collector's own series.
std::string device_part(const std::string& text) {
  return text.substr(0, text.find("# HELP muster_gpu_collector_tick_seconds"));
}

// What follows the version of the build.
constexpr const char* kOneGpu =
    R"(# HELP muster_machine_info The machine that is watched, and why it has no GPU; always 1
# TYPE muster_machine_info gauge
muster_machine_info{machine="here"} 1
# HELP muster_gpu_expected GPUs that were there when watching began, slices not counted
# TYPE muster_gpu_expected gauge
muster_gpu_expected 1
# HELP muster_gpu_info What of a GPU does not change; always 1
# TYPE muster_gpu_info gauge
muster_gpu_info{gpu="0",uuid="GPU-0a",name="NVIDIA H200",driver_version="590.48.01",pci_bus_id="00000000:1B:00.0",compute_capability="9.0"} 1
# HELP muster_gpu_up 1 while the GPU answers, 0 when it hangs or is lost
# TYPE muster_gpu_up gauge
muster_gpu_up{gpu="0",uuid="GPU-0a"} 1
# HELP muster_gpu_utilization_ratio Share of the driver's last period with a kernel running
# TYPE muster_gpu_utilization_ratio gauge
muster_gpu_utilization_ratio{gpu="0",uuid="GPU-0a"} 0.25
# HELP muster_gpu_power_watts Power drawn
# TYPE muster_gpu_power_watts gauge
muster_gpu_power_watts{gpu="0",uuid="GPU-0a",window="instant",scope="gpu"} 78.2
muster_gpu_power_watts{gpu="0",uuid="GPU-0a",window="instant",scope="module"} 90
# HELP muster_gpu_memory_size_bytes Device memory in all
# TYPE muster_gpu_memory_size_bytes gauge
muster_gpu_memory_size_bytes{gpu="0",uuid="GPU-0a"} 150754820096
# HELP muster_gpu_xid_errors_total XID errors that the driver reported, by code
# TYPE muster_gpu_xid_errors_total counter
muster_gpu_xid_errors_total{gpu="0",uuid="GPU-0a",xid="31"} 1
muster_gpu_xid_errors_total{gpu="0",uuid="GPU-0a",xid="48"} 0
muster_gpu_xid_errors_total{gpu="0",uuid="GPU-0a",xid="62"} 0
muster_gpu_xid_errors_total{gpu="0",uuid="GPU-0a",xid="64"} 0
muster_gpu_xid_errors_total{gpu="0",uuid="GPU-0a",xid="74"} 0
muster_gpu_xid_errors_total{gpu="0",uuid="GPU-0a",xid="79"} 0
muster_gpu_xid_errors_total{gpu="0",uuid="GPU-0a",xid="94"} 0
muster_gpu_xid_errors_total{gpu="0",uuid="GPU-0a",xid="95"} 0
muster_gpu_xid_errors_total{gpu="0",uuid="GPU-0a",xid="119"} 0
muster_gpu_xid_errors_total{gpu="0",uuid="GPU-0a",xid="120"} 0
muster_gpu_xid_errors_total{gpu="0",uuid="GPU-0a",xid="140"} 0
# HELP muster_gpu_xid_last_timestamp_seconds When this XID was last reported, Unix time
# TYPE muster_gpu_xid_last_timestamp_seconds gauge
muster_gpu_xid_last_timestamp_seconds{gpu="0",uuid="GPU-0a",xid="31"} 1700000000.5
# HELP muster_gpu_health_state Verdict of this watch: 0 well, 1 warning, 2 unfit
# TYPE muster_gpu_health_state gauge
muster_gpu_health_state{gpu="0",uuid="GPU-0a",watch="xid"} 1
# HELP muster_gpu_process_memory_bytes Device memory of a process; the largest 32 of each device
# TYPE muster_gpu_process_memory_bytes gauge
muster_gpu_process_memory_bytes{gpu="0",uuid="GPU-0a",pid="42",command="python"} 1048576
# HELP muster_gpu_collector_last_success_timestamp_seconds When the device last answered, Unix time
# TYPE muster_gpu_collector_last_success_timestamp_seconds gauge
muster_gpu_collector_last_success_timestamp_seconds{gpu="0",uuid="GPU-0a"} 1700000009.25
# HELP muster_gpu_collector_reading_errors_total Readings of a device that ended with this code
# TYPE muster_gpu_collector_reading_errors_total counter
muster_gpu_collector_reading_errors_total{gpu="0",uuid="GPU-0a",code="999"} 3
)";

TEST(Exposition, IsWhatPrometheusReadsOfOneGpu) {
  TelemetrySnapshot snapshot;
  snapshot.expected_gpus = 1;
  DeviceStatus gpu = gpu_status(0, "GPU-0a");
  gpu.readings.set(Reading::GpuUtilization, 0.25);
  gpu.readings.set(Reading::GpuPowerInstant, 78.2);
  gpu.readings.set(Reading::GpuModulePowerInstant, 90);
  gpu.readings.set(Reading::GpuMemorySize, 150754820096.0);
  gpu.xids[31] = {1, 1700000000.5};
  gpu.health = {{"xid", HealthState::Warning, "XID 31"}};
  gpu.processes = {{42, "python", 1048576, GpuProcessKind::Compute}};
  gpu.last_success_unix_seconds = 1700000009.25;
  gpu.error_counts[999] = 3;
  snapshot.devices = {gpu};

  EXPECT_EQ(device_part(text_of(snapshot)),
            "# HELP muster_build_info Version of muster; always 1\n"
            "# TYPE muster_build_info gauge\n"
            "muster_build_info{version=\"" +
                std::string(version()) + "\",build=\"" + std::string(build_name()) + "\"} 1\n" +
                kOneGpu);
}

TEST(Exposition, CountsVisitsInBucketsThatHoldAllShorterOnes) {
  TelemetrySnapshot snapshot;
  auto& ticks = snapshot.collector.ticks[0];
  ticks.counts[0] = 5;                                    // up to 0.1 ms
  ticks.counts[2] = 2;                                    // up to 0.5 ms
  ticks.counts[CollectorStatus::kTickBounds.size()] = 1;  // above 100 ms
  ticks.seconds = 0.25;
  ticks.missed = 4;

  auto buckets = series_of(snapshot, "muster_gpu_collector_tick_seconds_bucket");
  std::erase_if(buckets, [](const auto& series) { return label_of(series, "tier") != "fast"; });
  const std::vector<std::string> bounds{"0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005",
                                        "0.01",   "0.025",   "0.05",   "0.1",   "+Inf"};
  EXPECT_EQ(labels_of(buckets, "le"), bounds);
  std::vector<double> counts;
  for (const ReadSeries& series : buckets) counts.push_back(series.value);
  EXPECT_EQ(counts, (std::vector<double>{5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 8}));
  EXPECT_EQ(series_of(snapshot, "muster_gpu_collector_tick_seconds_sum")[0].value, 0.25);
  EXPECT_EQ(series_of(snapshot, "muster_gpu_collector_tick_seconds_count")[0].value, 8);
  EXPECT_EQ(series_of(snapshot, "muster_gpu_collector_missed_ticks_total")[0].value, 4);
}

TEST(Exposition, TellsWhatTheDriverCallsCost) {
  TelemetrySnapshot snapshot;
  snapshot.collector.calls = {{"nvmlDeviceGetFieldValues", 10, 0.5, {{15, 2}}}};
  const auto errors = series_of(snapshot, "muster_gpu_collector_errors_total");
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].labels, (Labels{{"call", "nvmlDeviceGetFieldValues"}, {"code", "15"}}));
  EXPECT_EQ(errors[0].value, 2);
  EXPECT_EQ(series_of(snapshot, "muster_gpu_collector_calls_total")[0].value, 10);
  EXPECT_EQ(series_of(snapshot, "muster_gpu_collector_call_seconds_total")[0].value, 0.5);
}

TEST(Exposition, HasEveryFamilyOnceWhateverTheFleet) {
  TelemetrySnapshot snapshot;
  for (std::uint32_t index = 0; index < 64; ++index) {
    DeviceStatus gpu = gpu_status(index, "GPU-" + std::to_string(index));
    set_all_readings(gpu, ReadingScope::Gpu);
    gpu.is_up = index != 5;
    gpu.xids[79] = {2, 1700000000};
    gpu.health = {{"xid", HealthState::Unfit, ""}, {"ecc", HealthState::Well, ""}};
    gpu.processes = {{7, "python", 5, GpuProcessKind::Compute}};
    gpu.last_success_unix_seconds = 1700000000;
    gpu.error_counts[3] = 1;
    snapshot.devices.push_back(gpu);
    snapshot.devices.push_back(slice_status(gpu, 0, "MIG-" + std::to_string(index)));
    set_all_readings(snapshot.devices.back(), ReadingScope::Gpu);
  }
  snapshot.devices.push_back(cpu_status(0));
  set_all_readings(snapshot.devices.back(), ReadingScope::Cpu);
  set_all_readings(snapshot.devices.back(), ReadingScope::Host);
  snapshot.collector.calls = {{"nvmlInit_v2", 1, 0.1, {{9, 1}}}};

  const std::string text = prometheus_text(snapshot, MetricSet::Dcgm);
  EXPECT_EQ(read_strictly(text).fault, "");
  for (const ReadingFamily& family : reading_families()) {
    EXPECT_NE(text.find("# TYPE muster_" + std::string(family.name) + " "), std::string::npos)
        << family.name;
  }
  for (const ComputedFamily* family : computed_families()) {
    EXPECT_NE(text.find("# TYPE muster_" + std::string(family->name) + " "), std::string::npos)
        << family->name;
  }
}

TEST(Exposition, SaysWithoutAGpuWhyThereIsNone) {
  TelemetrySnapshot snapshot;
  snapshot.gpu_absent_reason = "no NVIDIA driver (libnvidia-ml.so.1)";
  const auto info = series_of(snapshot, "muster_machine_info");
  ASSERT_EQ(info.size(), 1U);
  EXPECT_EQ(label_of(info[0], "gpu_absent_reason"), "no NVIDIA driver (libnvidia-ml.so.1)");
  EXPECT_EQ(series_of(snapshot, "muster_gpu_expected")[0].value, 0);
  EXPECT_EQ(text_of(snapshot).find("muster_gpu_up"), std::string::npos);
}

TEST(Exposition, GivesASliceItsOwnReadingsAndNotItsBoards) {
  TelemetrySnapshot snapshot;
  const DeviceStatus gpu = gpu_status(3, "GPU-3");
  DeviceStatus slice = slice_status(gpu, 1, "MIG-31");
  set_all_readings(slice, ReadingScope::Gpu);
  slice.health = {{"xid", HealthState::Well, ""}};
  snapshot.devices = {gpu, slice};

  const auto memory = series_of(snapshot, "muster_gpu_memory_size_bytes");
  ASSERT_EQ(memory.size(), 1U);
  EXPECT_EQ(memory[0].labels, (Labels{{"gpu", "3"}, {"uuid", "MIG-31"}, {"mig", "1"}}));
  for (const auto* const family :
       {"power_watts", "energy_joules_total", "temperature_celsius", "clock_hertz",
        "ecc_errors_total", "pcie_bytes_total", "nvlink_bytes_total", "clock_event_active"}) {
    EXPECT_TRUE(series_of(snapshot, "muster_gpu_" + std::string(family)).empty()) << family;
  }
  EXPECT_EQ(series_of(snapshot, "muster_gpu_up").size(), 1U);
  EXPECT_TRUE(series_of(snapshot, "muster_gpu_health_state").empty());
  EXPECT_EQ(labels_of(series_of(snapshot, "muster_gpu_info"), "mig_profile"),
            (std::vector<std::string>{"", "1g.18gb"}));
}

TEST(Exposition, ExpandsTheMaskOfClockEvents) {
  TelemetrySnapshot snapshot;
  snapshot.devices = {gpu_status(0, "GPU-0")};
  snapshot.devices[0].readings.set(Reading::GpuClockEvents, 0x44);  // power cap, hardware thermal
  std::vector<std::string> active;
  const auto events = series_of(snapshot, "muster_gpu_clock_event_active");
  for (const ReadSeries& series : events) {
    if (series.value == 1) active.push_back(label_of(series, "reason"));
  }
  EXPECT_EQ(events.size(), 9U);
  EXPECT_EQ(active, (std::vector<std::string>{"sw_power_cap", "hw_thermal"}));
}

TEST(Exposition, LeavesOutWhatIsNoFiniteNumber) {
  TelemetrySnapshot snapshot;
  snapshot.devices = {gpu_status(0, "GPU-0")};
  snapshot.devices[0].readings.set(Reading::GpuPowerInstant,
                                   std::numeric_limits<double>::quiet_NaN());
  snapshot.devices[0].readings.set(Reading::GpuEnergy, std::numeric_limits<double>::infinity());
  const std::string text = text_of(snapshot);
  EXPECT_EQ(text.find("power_watts"), std::string::npos);
  EXPECT_EQ(text.find("energy_joules"), std::string::npos);
}

TEST(Exposition, KeepsAnAmdGpuFreeOfXids) {
  TelemetrySnapshot snapshot;
  snapshot.devices = {gpu_status(0, "0x1234")};
  snapshot.devices[0].identity.device.kind = DeviceKind::Rocm;
  EXPECT_TRUE(series_of(snapshot, "muster_gpu_xid_errors_total").empty());
  EXPECT_TRUE(series_of(snapshot, "DCGM_FI_DEV_XID_ERRORS", MetricSet::Dcgm).empty());
}

TEST(Exposition, LabelsACpuByItsNameAndTheMachineNotAtAll) {
  TelemetrySnapshot snapshot;
  snapshot.devices = {cpu_status(1)};
  snapshot.devices[0].readings.set(Reading::CpuUtilization, 0.5);
  snapshot.devices[0].readings.set(Reading::HostMemoryLimit, 1024);
  EXPECT_EQ(series_of(snapshot, "muster_cpu_utilization_ratio")[0].labels,
            (Labels{{"device", "cpu:1"}}));
  EXPECT_EQ(series_of(snapshot, "muster_host_memory_bytes")[0].labels,
            (Labels{{"state", "limit"}}));
}

TEST(Processes, KeepTheirNamesWhateverBytesTheyHave) {
  TelemetrySnapshot snapshot;
  snapshot.devices = {gpu_status(0, "GPU-0")};
  snapshot.devices[0].processes = {
      {1, "a\"} 1\nmuster_gpu_up 0", 9, GpuProcessKind::Compute},
      {2, R"(\n\)", 8, GpuProcessKind::Compute},
      {3, "\xC3(\xFF", 7, GpuProcessKind::Compute},
      {4, "\x1B[2J\t", 6, GpuProcessKind::Compute},
      {5, "モデル", 5, GpuProcessKind::Compute},
  };
  const auto processes = series_of(snapshot, "muster_gpu_process_memory_bytes");
  EXPECT_EQ(labels_of(processes, "command"),
            (std::vector<std::string>{"a\"} 1\nmuster_gpu_up 0", R"(\n\)", "\uFFFD(\uFFFD",
                                      "\uFFFD[2J\uFFFD", "モデル"}));
  EXPECT_EQ(series_of(snapshot, "muster_gpu_up").size(), 1U);
}

TEST(Processes, AreOneSeriesEachAndThirtyTwoAtMost) {
  TelemetrySnapshot snapshot;
  snapshot.devices = {gpu_status(0, "GPU-0")};
  auto& processes = snapshot.devices[0].processes;
  // Computes and draws: listed twice. Of other pid namespaces: no pid, so they can only be added.
  processes = {{7, "game", 100, GpuProcessKind::Compute},
               {7, "game", 100, GpuProcessKind::Graphics},
               {0, "", 30, GpuProcessKind::Compute},
               {0, "", 12, GpuProcessKind::Compute},
               {9, "unknown", std::nullopt, GpuProcessKind::Compute}};
  auto series = series_of(snapshot, "muster_gpu_process_memory_bytes");
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(label_of(series[0], "pid"), "7");
  EXPECT_EQ(series[0].value, 100);
  EXPECT_EQ(label_of(series[1], "pid"), "0");
  EXPECT_EQ(series[1].value, 42);

  processes.clear();
  for (std::uint32_t pid = 1; pid <= 40; ++pid) {
    processes.push_back({pid, "worker", pid, GpuProcessKind::Compute});
  }
  series = series_of(snapshot, "muster_gpu_process_memory_bytes");
  ASSERT_EQ(series.size(), 32U);
  EXPECT_EQ(series.front().value, 40);
  EXPECT_EQ(series.back().value, 9);
}

TEST(DcgmNames, CarryDcgmsLabelsAndUnits) {
  TelemetrySnapshot snapshot;
  DeviceStatus gpu = gpu_status(2, "GPU-2");
  gpu.readings.set(Reading::GpuTemperatureCore, 52);
  gpu.readings.set(Reading::GpuPowerAverage, 627.4);
  gpu.readings.set(Reading::GpuClockSm, 1.98e9);
  gpu.readings.set(Reading::GpuUtilization, 0.98);
  gpu.readings.set(Reading::GpuMemoryUsed, 2147483648.0);
  gpu.readings.set(Reading::GpuTensorActiveAny, 0.75);
  gpu.readings.set(Reading::GpuEnergy, 12.5);
  gpu.xids = {{79, {1, 20}}, {31, {5, 30}}};
  snapshot.devices = {gpu};

  const auto value = [&](const char* name) {
    const auto series = series_of(snapshot, name, MetricSet::Dcgm);
    return series.size() == 1 ? series[0].value : -1;
  };
  EXPECT_EQ(value("DCGM_FI_DEV_GPU_TEMP"), 52);
  EXPECT_EQ(value("DCGM_FI_DEV_POWER_USAGE"), 627.4);
  EXPECT_EQ(value("DCGM_FI_DEV_SM_CLOCK"), 1980);
  EXPECT_EQ(value("DCGM_FI_DEV_GPU_UTIL"), 98);
  EXPECT_EQ(value("DCGM_FI_DEV_FB_USED"), 2048);
  EXPECT_EQ(value("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), 0.75);
  EXPECT_EQ(value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"), 12500);
  EXPECT_EQ(value("DCGM_FI_DEV_XID_ERRORS"), 31);

  auto labels = series_of(snapshot, "DCGM_FI_DEV_GPU_TEMP", MetricSet::Dcgm)[0].labels;
  std::erase_if(labels, [](const auto& label) { return label.first == "Hostname"; });
  EXPECT_EQ(labels, (Labels{{"gpu", "2"},
                            {"UUID", "GPU-2"},
                            {"pci_bus_id", "00000000:1B:00.0"},
                            {"device", "nvidia2"},
                            {"modelName", "NVIDIA H200"},
                            {"DCGM_FI_DRIVER_VERSION", "590.48.01"}}));
}

TEST(DcgmNames, NameTheBoardOfASliceAndTheSlice) {
  TelemetrySnapshot snapshot;
  const DeviceStatus gpu = gpu_status(3, "GPU-3");
  DeviceStatus slice = slice_status(gpu, 1, "MIG-31");
  slice.readings.set(Reading::GpuMemoryUsed, 1048576);
  snapshot.devices = {gpu, slice};
  const auto series = series_of(snapshot, "DCGM_FI_DEV_FB_USED", MetricSet::Dcgm);
  ASSERT_EQ(series.size(), 1U);
  EXPECT_EQ(label_of(series[0], "UUID"), "GPU-3");
  EXPECT_EQ(label_of(series[0], "gpu"), "3");
  EXPECT_EQ(label_of(series[0], "GPU_I_PROFILE"), "1g.18gb");
  EXPECT_EQ(label_of(series[0], "GPU_I_ID"), "8");
}

TEST(DcgmNames, AreNotThereUnlessAskedFor) {
  TelemetrySnapshot snapshot;
  snapshot.devices = {gpu_status(0, "GPU-0")};
  EXPECT_EQ(text_of(snapshot).find("DCGM"), std::string::npos);
}

}  // namespace
}  // namespace muster
