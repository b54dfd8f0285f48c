#include "views/snapshot_fixture.h"

#include <fmt/format.h>

namespace muster {

DeviceStatus busy_h200(std::uint32_t index) {
  DeviceStatus status;
  auto& identity = status.identity;
  identity.device.kind = DeviceKind::Cuda;
  identity.device.index = index;
  identity.device.model = "NVIDIA H200";
  identity.device.uuid = fmt::format("GPU-00000000-0000-0000-0000-{:012}", index);
  identity.device.pci_address = fmt::format("00000000:{:02X}:00.0", 0x1B + index);
  identity.device.memory_total_bytes = 150'754'820'096;
  identity.driver_version = "590.48.01";
  identity.cuda_ordinal = index;
  identity.numa_node = 0;
  status.name = fmt::format("cuda:{}", index);
  status.is_up = true;
  auto& readings = status.readings;
  readings.set(Reading::GpuUtilization, 0.97);
  readings.set(Reading::GpuSmActive, 0.91);
  readings.set(Reading::GpuTensorActiveAny, 0.62);
  readings.set(Reading::GpuMemoryUsed, 98e9);
  readings.set(Reading::GpuMemorySize, 150'754'820'096);
  readings.set(Reading::GpuPowerInstant, 627);
  readings.set(Reading::GpuPowerLimitEnforced, 700);
  readings.set(Reading::GpuTemperatureCore, 52);
  readings.set(Reading::GpuTemperatureHeadroom, 35);
  readings.set(Reading::GpuClockSm, 1.98e9);
  readings.set(Reading::GpuClockMaxSm, 1.98e9);
  readings.set(Reading::GpuClockEvents, 0);
  readings.set(Reading::GpuPcieGeneration, 5);
  readings.set(Reading::GpuPcieLanes, 16);
  status.health = {{"memory", HealthState::Well, ""}, {"thermal", HealthState::Well, ""}};
  return status;
}

DeviceStatus h200_slice(std::uint32_t gpu_index, std::uint32_t index) {
  DeviceStatus status;
  auto& identity = status.identity;
  identity.device.kind = DeviceKind::Cuda;
  identity.device.index = index;
  identity.device.model = "NVIDIA H200 MIG 1g.18gb";
  identity.device.uuid = fmt::format("MIG-00000000-0000-0000-0000-{:012}", index);
  identity.device.memory_total_bytes = 18'000'000'000;
  identity.driver_version = "590.48.01";
  identity.cuda_ordinal = index;
  identity.parent = fmt::format("GPU-00000000-0000-0000-0000-{:012}", gpu_index);
  identity.mig_profile = "1g.18gb";
  status.name = fmt::format("cuda:{}:{}", gpu_index, index);
  status.is_up = true;
  status.readings.set(Reading::GpuMemoryUsed, 9e9);
  status.readings.set(Reading::GpuMemorySize, 18e9);
  return status;
}

DeviceStatus busy_cpu(std::uint32_t index) {
  DeviceStatus status;
  auto& device = status.identity.device;
  device.kind = DeviceKind::Cpu;
  device.index = index;
  device.model = "AMD EPYC 9654 96-Core Processor";
  device.cpus = {0, 1, 2, 3};
  device.memory_total_bytes = 256'000'000'000;
  status.identity.numa_node = index;
  status.name = fmt::format("cpu:{}", index);
  status.is_up = true;
  status.core_loads = {0.0F, 0.5F, 1.0F, 0.25F};
  status.readings.set(Reading::CpuUtilization, 0.4375);
  status.readings.set(Reading::CpuFrequency, 3.7e9);
  status.readings.set(Reading::CpuMemorySize, 256e9);
  status.readings.set(Reading::CpuMemoryFree, 12e9);  // 210 GB are page cache
  status.readings.set(Reading::CpuMemoryAvailable, 222e9);
  status.readings.set(Reading::HostMemorySize, 256e9);
  status.readings.set(Reading::HostMemoryAvailable, 222e9);
  return status;
}

void take_down(DeviceStatus& status, const std::string& reason) {
  status.is_up = false;
  status.down_reason = reason;
  status.readings = {};
  status.health = {{"present", HealthState::Unfit, reason}};
}

TelemetrySnapshot machine_of(std::uint32_t gpus) {
  TelemetrySnapshot snapshot;
  for (std::uint32_t i = 0; i < gpus; ++i) snapshot.devices.push_back(busy_h200(i));
  snapshot.devices.push_back(busy_cpu(0));
  snapshot.expected_gpus = gpus;
  if (gpus == 0) snapshot.gpu_absent_reason = "no NVIDIA driver (libnvidia-ml.so.1)";
  snapshot.links.device_count = gpus;
  for (std::uint32_t i = 0; i < gpus * gpus; ++i) {
    const bool is_self = i / gpus == i % gpus;
    snapshot.links.labels.push_back(is_self ? LinkLabel{LinkKind::Self, 0}
                                            : LinkLabel{LinkKind::NvLink, 18});
  }
  return snapshot;
}

TopData frame_of(TelemetrySnapshot snapshot) {
  TopData data;
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    Trend trend;
    trend.busy.assign(kTrendSeconds, 0.97);
    trend.memory.assign(kTrendSeconds, 0.65);
    trend.watts = snapshot.devices[i].readings.get(Reading::GpuPowerInstant);
    data.trends.push_back(std::move(trend));
  }
  data.snapshot = std::move(snapshot);
  data.clock = "14:02:31";
  return data;
}

}  // namespace muster
