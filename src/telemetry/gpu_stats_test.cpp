#include "telemetry/gpu_stats.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr double kMb = 1048576;

TelemetrySnapshot one_gpu_a_slice_and_a_cpu() {
  TelemetrySnapshot snapshot;
  snapshot.unix_seconds = 1'700'000'000.9;
  auto& gpu = snapshot.devices.emplace_back();
  gpu.identity.device.kind = DeviceKind::Cuda;
  gpu.identity.device.index = 0;
  gpu.identity.device.model = "NVIDIA L4";
  gpu.identity.device.compute_capability = 89;
  gpu.readings.set(Reading::GpuMemorySize, 1000 * kMb);
  gpu.readings.set(Reading::GpuMemoryUsed, 250 * kMb);
  gpu.readings.set(Reading::GpuMemoryFree, 740 * kMb);
  gpu.readings.set(Reading::GpuUtilization, 0.5);
  gpu.readings.set(Reading::GpuPowerAverage, 60);
  auto slice = gpu;
  slice.identity.parent = "GPU-1";
  snapshot.devices.push_back(slice);
  snapshot.devices.emplace_back();
  return snapshot;
}

TEST(GpuStats, OfTheServersRoute) {
  EXPECT_EQ(gpu_stats_json(one_gpu_a_slice_and_a_cpu()),
            R"({"timestamp":"2023-11-14T22:13:20Z","devices":[{"index":0,"name":"NVIDIA L4",)"
            R"("compute_capability":"8.9","memory_total_mb":1000.0,"memory_free_mb":740.0,)"
            R"("memory_usage_percent":25.0,"utilization":0.5,"temperature_c":null,)"
            R"("power_draw_watts":60.0}]})");
}

TEST(GpuStats, OfSeveralGpus) {
  EXPECT_EQ(gpu_info_json(one_gpu_a_slice_and_a_cpu()),
            R"({"gpu_0":{"id":0,"name":"NVIDIA L4","memory_total":1000.0,"memory_used":250.0,)"
            R"("memory_free":740.0,"memory_utilization":25.0,"gpu_utilization":50.0,)"
            R"("temperature":null,"power_draw":60.0}})");
}

TEST(GpuStats, WithoutGpusAreEmpty) {
  EXPECT_EQ(gpu_info_json({}), "{}");
  EXPECT_EQ(gpu_stats_json({}), R"({"timestamp":"1970-01-01T00:00:00Z","devices":[]})");
}

}  // namespace
}  // namespace muster
