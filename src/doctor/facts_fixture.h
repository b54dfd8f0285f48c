#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "doctor/checks.h"

namespace muster {

/// Facts of a machine with two well H200 and a CPU, for tests to break.
inline DoctorFacts well_facts() {
  DoctorFacts facts;
  facts.build = "1.0 (abc)";
  for (std::uint32_t i = 0; i < 2; ++i) {
    DeviceStatus gpu;
    auto& device = gpu.identity.device;
    device.kind = DeviceKind::Cuda;
    device.index = i;
    device.model = "NVIDIA H200";
    device.uuid = "GPU-0000000" + std::to_string(i);
    device.pci_address = "00000000:1" + std::to_string(i) + ":00.0";
    gpu.identity.driver_version = "590.48.01";
    gpu.identity.cuda_version = "13.1";
    gpu.identity.is_ecc_on = true;
    gpu.identity.is_persistent = true;
    gpu.identity.is_mig_on = false;
    gpu.identity.compute_mode = 0;
    gpu.identity.cuda_ordinal = i;
    gpu.is_up = true;
    gpu.name = "cuda:" + std::to_string(i);
    gpu.readings.set(Reading::GpuClockEvents, 1);  // idle
    gpu.readings.set(Reading::GpuNvlinkLinksActive, 18);
    gpu.health = {{"present", HealthState::Well, ""}, {"xid", HealthState::Well, ""}};
    facts.snapshot.devices.push_back(gpu);
    facts.inventory.gpus.push_back(device);
  }
  DeviceStatus cpu;
  cpu.identity.device.model = "Some CPU";
  cpu.identity.device.cpus = {0, 1};
  cpu.name = "cpu:0";
  cpu.is_up = true;
  cpu.readings.set(Reading::CpuFrequency, 2e9);
  facts.snapshot.devices.push_back(cpu);
  facts.snapshot.unix_seconds = 1'000'000;
  facts.snapshot.links = {2, {{}, {LinkKind::NvLink, 18}, {LinkKind::NvLink, 18}, {}}};
  facts.inventory.cpus = {cpu.identity.device};
  facts.inventory.allowed_cpus = {0, 1};
  facts.inventory.core_count = 2;
  facts.inventory.memory_total_bytes = 64'000'000'000;
  facts.inventory.instruction_sets = {"avx2", "fma"};
  facts.system.cpus_online = 2;
  facts.system.open_files_max = 1024;
  facts.system.seconds_since_boot = 5000;
  facts.system.clock_source = std::string("tsc");
  facts.system.shared_memory = FolderFacts{"/dev/shm", true, 8'000'000'000, 8'000'000'000};
  facts.system.kernel_xids = std::vector<KernelXid>{};
  facts.torch = TorchFacts{"/t/torch", "this build", "2.11.0+cu130", "13.0", true};
  facts.worker = WorkerFacts{"/b/muster-worker", "1.0 (abc)"};
  facts.cache = FolderFacts{"/c", true, 1'000'000'000, 1'000'000'000};
  facts.compute_left_out = "left out by --no-compute";
  return facts;
}

/// Those that are neither well nor beside the point.
inline std::vector<Check> complaints(const DoctorFacts& facts) {
  auto checks = check_all(facts);
  std::erase_if(checks, [](const Check& check) { return check.verdict < Verdict::NotSeen; });
  return checks;
}

}  // namespace muster
