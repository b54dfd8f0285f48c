#include "doctor/checks.h"

#include <gtest/gtest.h>

#include "doctor/facts_fixture.h"

namespace muster {
namespace {

// That there is one complaint, what it is about, and the words it must hold.
void expect_only(const DoctorFacts& facts, const std::string& name, const std::string& device,
                 Verdict verdict, const std::string& words) {
  const auto found = complaints(facts);
  ASSERT_EQ(found.size(), 1U) << (found.empty() ? "none" : found.back().sentence);
  EXPECT_EQ(found[0].name, name);
  EXPECT_EQ(found[0].device, device);
  EXPECT_EQ(found[0].verdict, verdict) << verdict_word(found[0].verdict);
  EXPECT_NE(found[0].sentence.find(words), std::string::npos) << found[0].sentence;
  EXPECT_FALSE(found[0].advice.empty());
}

TEST(Checks, AWellMachineHasNoComplaint) {
  const auto facts = well_facts();
  EXPECT_TRUE(complaints(facts).empty());
  EXPECT_EQ(doctor_exit_code(overall_verdict(check_all(facts))), 0);
}

TEST(Checks, TheWorstVerdictDecidesTheExitCode) {
  std::vector<Check> checks{{.name = "a"}, {.name = "b", .verdict = Verdict::NotSeen}};
  EXPECT_EQ(doctor_exit_code(overall_verdict(checks)), 0);
  checks.push_back({.name = "c", .verdict = Verdict::Warning});
  EXPECT_EQ(doctor_exit_code(overall_verdict(checks)), 20);
  checks.push_back({.name = "d", .verdict = Verdict::Unfit});
  EXPECT_EQ(doctor_exit_code(overall_verdict(checks)), 21);
}

TEST(Checks, FindingsOfTheWatchesKeepTheirStateAndGetAdvice) {
  auto facts = well_facts();
  facts.snapshot.devices[1].health[1] = {"xid", HealthState::Unfit, "XID 79, times: 2"};
  expect_only(facts, "xid", "cuda:1", Verdict::Unfit, "XID 79");
  facts.snapshot.devices[1].health[1] = {"xid", HealthState::Warning, "XID 94, times: 1"};
  expect_only(facts, "xid", "cuda:1", Verdict::Warning, "XID 94");
}

TEST(Checks, EccOffIsAWarningAndNoEccIsNone) {
  auto facts = well_facts();
  facts.snapshot.devices[0].identity.is_ecc_on = false;
  expect_only(facts, "ecc_mode", "cuda:0", Verdict::Warning, "ECC is off");
  facts.snapshot.devices[0].identity.is_ecc_on.reset();
  EXPECT_TRUE(complaints(facts).empty());
}

TEST(Checks, PersistenceModeOffIsAWarning) {
  auto facts = well_facts();
  facts.snapshot.devices[0].identity.is_persistent = false;
  expect_only(facts, "persistence", "cuda:0", Verdict::Warning, "persistence mode is off");
}

TEST(Checks, AProhibitedComputeModeIsUnfitAnExclusiveOneAWarning) {
  auto facts = well_facts();
  facts.snapshot.devices[0].identity.compute_mode = 2;
  expect_only(facts, "compute_mode", "cuda:0", Verdict::Unfit, "prohibited");
  facts.snapshot.devices[0].identity.compute_mode = 3;
  expect_only(facts, "compute_mode", "cuda:0", Verdict::Warning, "exclusive");
}

TEST(Checks, MigWithoutASliceIsUnfitAndWithOneWell) {
  auto facts = well_facts();
  facts.snapshot.devices[0].identity.is_mig_on = true;
  expect_only(facts, "mig", "cuda:0", Verdict::Unfit, "no slice");
  DeviceStatus slice;
  slice.identity.device.kind = DeviceKind::Cuda;
  slice.identity.parent = facts.snapshot.devices[0].identity.device.uuid;
  slice.name = "cuda:0:0";
  facts.snapshot.devices.insert(facts.snapshot.devices.begin() + 1, slice);
  EXPECT_TRUE(complaints(facts).empty());
}

TEST(Checks, ForeignProgramsAreNamedAndADesktopIsNot) {
  auto facts = well_facts();
  facts.snapshot.devices[0].processes = {
      {.pid = 7, .command = "Xorg", .memory_bytes = {}, .kind = GpuProcessKind::Graphics}};
  EXPECT_TRUE(complaints(facts).empty());
  facts.snapshot.devices[0].processes.push_back(
      {.pid = 42, .command = "python3", .memory_bytes = 2'000'000'000});
  expect_only(facts, "processes", "cuda:0", Verdict::Warning, "python3 (pid 42, 2.00 GB)");
}

TEST(Checks, AClockHeldDownIsAWarningAndAnIdleOneIsNot) {
  auto facts = well_facts();
  facts.snapshot.devices[0].readings.set(Reading::GpuClockEvents, 0x4);  // software power cap
  expect_only(facts, "throttling", "cuda:0", Verdict::Warning, "power cap");
}

TEST(Checks, FewerLinksThanItsFellowsIsAWarning) {
  auto facts = well_facts();
  facts.snapshot.devices[1].readings.set(Reading::GpuNvlinkLinksActive, 16);
  expect_only(facts, "nvlink_peers", "cuda:1", Verdict::Warning, "16 of 18");
}

TEST(Checks, APairOfABoardWithoutALinkIsNamed) {
  auto facts = well_facts();
  facts.snapshot.links.labels[1].kind = LinkKind::Sys;
  facts.snapshot.links.labels[2].kind = LinkKind::Sys;
  expect_only(facts, "links", "", Verdict::Warning, "cuda:0 and cuda:1");
}

TEST(Checks, NoDriverIsNotApplicableWithoutAGpuAndUnfitWithOne) {
  auto facts = well_facts();
  facts.snapshot.devices.erase(facts.snapshot.devices.begin(), facts.snapshot.devices.begin() + 2);
  facts.snapshot.links = {};
  facts.snapshot.gpu_absent_reason = "no NVIDIA driver (libnvidia-ml.so.1)";
  EXPECT_TRUE(complaints(facts).empty());
  facts.system.nvidia_gpus_on_bus = 8;
  expect_only(facts, "driver", "", Verdict::Unfit, "cannot be used: 8");
}

TEST(Checks, ADriverThatDoesNotStartIsUnfit) {
  auto facts = well_facts();
  facts.snapshot.devices.erase(facts.snapshot.devices.begin(), facts.snapshot.devices.begin() + 2);
  facts.snapshot.links = {};
  facts.snapshot.gpu_absent_reason =
      "the NVIDIA driver does not start: Driver/library version mismatch (NVML 18)";
  expect_only(facts, "driver", "", Verdict::Unfit, "mismatch");
}

TEST(Checks, AModuleOfAnotherVersionIsAWarning) {
  auto facts = well_facts();
  facts.system.nvidia_module = "580.95.05";
  expect_only(facts, "driver", "", Verdict::Warning, "590.48.01 and 580.95.05");
}

TEST(Checks, ADriverThatEndsItsCallerIsAWarning) {
  auto facts = well_facts();
  facts.snapshot.collector.restarts = 2;
  expect_only(facts, "driver_crashes", "", Verdict::Warning, "2 times");
}

TEST(Checks, ADriverOlderThanTorchsCudaIsUnfit) {
  auto facts = well_facts();
  for (auto& status : facts.snapshot.devices) status.identity.cuda_version = "12.9";
  expect_only(facts, "driver_cuda", "", Verdict::Unfit, "CUDA 13.0, the driver runs at most 12.9");
}

TEST(Checks, CudaVisibleDevicesMayHideOrNameWhatIsMissing) {
  auto facts = well_facts();
  facts.cuda_visible_devices = "1,0";
  EXPECT_TRUE(complaints(facts).empty());
  facts.cuda_visible_devices = "1";
  facts.snapshot.devices[0].identity.cuda_ordinal.reset();
  expect_only(facts, "visible_devices", "", Verdict::Warning, "hides cuda:0");
  facts.snapshot.devices[0].lost_reason = "GPU is lost (NVML 15)";
  EXPECT_TRUE(complaints(facts).empty()) << "nobody hides it";
  facts.snapshot.devices[0].lost_reason.clear();
  facts.cuda_visible_devices = "1,9";
  expect_only(facts, "visible_devices", "", Verdict::Warning, "not here, and hides what follows");
  facts.cuda_visible_devices = "GPU-00000001,GPU-7";
  expect_only(facts, "visible_devices", "", Verdict::Warning, "GPU-7");
}

TEST(Checks, LimitsBelowTheMachineAreWarnings) {
  auto facts = well_facts();
  facts.inventory.memory_limit_bytes = 8'000'000'000;
  expect_only(facts, "memory_limit", "", Verdict::Warning, "8.00 GB of 64.0 GB");
  facts = well_facts();
  facts.inventory.cpu_limit_cores = 1.5;
  expect_only(facts, "cpu_limit", "", Verdict::Warning, "1.5 of 2");
  facts = well_facts();
  facts.system.cpus_online = 16;
  expect_only(facts, "affinity", "", Verdict::Warning, "2 of 16");
  facts = well_facts();
  facts.system.open_files_max = 87;  // 64 + 8 x 3 are needed
  expect_only(facts, "open_files", "", Verdict::Warning, "87, and 88");
}

TEST(Checks, SmallSharedMemoryMattersToSeveralGpusOnly) {
  auto facts = well_facts();
  facts.system.shared_memory = FolderFacts{"/dev/shm", true, 64 << 20, 64 << 20};
  expect_only(facts, "shared_memory", "", Verdict::Warning, "67.1 MB");
  facts.snapshot.devices.erase(facts.snapshot.devices.begin());
  EXPECT_TRUE(complaints(facts).empty());
}

TEST(Checks, WhatCannotBeReadIsNotSeenAndNoWarning) {
  auto facts = well_facts();
  facts.system.energy_domains = Error{ErrorKind::Unavailable, "/sys/x: cannot open: Permission"};
  expect_only(facts, "cpu_energy", "", Verdict::NotSeen, "Permission");
  EXPECT_EQ(doctor_exit_code(overall_verdict(check_all(facts))), 0);
}

TEST(Checks, ASlowClockAndAFullDiskAreWarnings) {
  auto facts = well_facts();
  facts.system.clock_source = std::string("hpet");
  expect_only(facts, "clock_source", "", Verdict::Warning, "hpet");
  facts = well_facts();
  facts.cache->free_bytes = 1000;
  expect_only(facts, "cache", "", Verdict::Warning, "full");
  facts.cache->is_writable = false;
  expect_only(facts, "cache", "", Verdict::Warning, "cannot be written");
}

TEST(Checks, MissingTorchAndAWorkerOfAnotherBuildAreUnfit) {
  auto facts = well_facts();
  facts.torch = Error{ErrorKind::Unavailable, "no torch 2.11 was found"};
  expect_only(facts, "torch", "", Verdict::Unfit, "no torch 2.11");
  facts = well_facts();
  facts.torch->has_cuda_library = false;
  expect_only(facts, "cuda_libraries", "", Verdict::Unfit, "CPUs alone");
  facts = well_facts();
  facts.torch->missing_libraries = {"libcublas.so.13", "libcufft.so.12"};
  expect_only(facts, "cuda_libraries", "", Verdict::Unfit, "libcublas.so.13 and 1 more");
  facts = well_facts();
  facts.worker->build = "0.9 (old)";
  expect_only(facts, "worker", "", Verdict::Unfit, "it is 0.9 (old), this is 1.0 (abc)");
}

TEST(Checks, ASimulatedMachineIsJudgedByItsDevicesAlone) {
  auto facts = well_facts();
  facts.is_simulated = true;
  facts.torch = Error{ErrorKind::Unavailable, "none"};
  facts.system.open_files_max = 1;
  EXPECT_TRUE(complaints(facts).empty());
}

TEST(MergeKernelXids, TheLogAddsWhatTheCollectorHasNotSeen) {
  auto facts = well_facts();
  // The snapshot is at second 1,000,000, 5,000 seconds after the start.
  facts.system.kernel_xids = std::vector<KernelXid>{{"0000:11:00", 79, 4990.0}};
  merge_kernel_xids(facts);
  const auto& xids = facts.snapshot.devices[1].xids;
  ASSERT_EQ(xids.count(79), 1U);
  EXPECT_EQ(xids.at(79).count, 1U);
  EXPECT_EQ(xids.at(79).last_unix_seconds, 1'000'000 - 5000 + 4990);
  EXPECT_TRUE(facts.snapshot.devices[0].xids.empty());
  const auto found = complaints(facts);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "xid");
  EXPECT_EQ(found[0].device, "cuda:1");
  EXPECT_EQ(found[0].verdict, Verdict::Unfit);
}

}  // namespace
}  // namespace muster
