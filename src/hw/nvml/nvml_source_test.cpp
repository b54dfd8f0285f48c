// What is found when the NVIDIA driver is opened, against the stand-in driver: identities, slices,
// links, processes, events.
#include <gtest/gtest.h>

#include "hw/nvml/nvml_driver_fixture.h"

namespace muster {
namespace {

constexpr const char* kOneGpu = R"({"fake_nvml": 1, "clock": "stepped", "gpus": [{}]})";

TEST(OpenNvml, TellsWhatDoesNotChange) {
  FakeDriver driver(R"({"fake_nvml": 1, "driver": "590.48.01", "cuda": "13.1", "clock": "stepped",
    "gpus": [{"model": "H100-80G", "uuid": "GPU-one", "pci": "00000001:2B:00.0", "serial": "1652",
              "vbios": "96.00.74", "ecc": true, "compute_mode": 3, "persistent": false,
              "numa_node": 1}]})");
  const auto source = driver.open();
  ASSERT_EQ(source.samplers.size(), 1U);
  const auto& identity = source.samplers[0]->identity();
  EXPECT_EQ(identity.device.name(), "cuda:0");
  EXPECT_EQ(identity.device.uuid, "GPU-one");
  EXPECT_EQ(identity.device.pci_address, "00000001:2B:00.0");
  EXPECT_EQ(identity.device.compute_capability, 90U);
  EXPECT_EQ(identity.driver_version, "590.48.01");
  EXPECT_EQ(identity.cuda_version, "13.1");
  EXPECT_EQ(identity.serial, "1652");
  EXPECT_EQ(identity.vbios, "96.00.74");
  EXPECT_EQ(identity.numa_node, 1U);
  EXPECT_EQ(identity.multiprocessor_count, 132U);
  EXPECT_EQ(identity.is_ecc_on, true);
  EXPECT_EQ(identity.is_mig_on, false);
  EXPECT_EQ(identity.is_persistent, false);
  EXPECT_EQ(identity.compute_mode, 3U);
  EXPECT_EQ(identity.driver_index, 0U);
  EXPECT_EQ(identity.cuda_ordinal, 0U);
  EXPECT_FALSE(identity.parent);
  EXPECT_FALSE(identity.has_mps_server);
  EXPECT_FALSE(identity.has_unified_memory);
}

TEST(OpenNvml, TellsTheMemoryThatIsThereAndFree) {
  FakeDriver driver(R"({"fake_nvml": 1, "gpus": [
      {"memory_bytes": 150754820096, "reserved_bytes": 50,
       "values": {"memory_used_bytes": 754820046}}]})");
  const auto source = driver.open();
  ASSERT_EQ(source.samplers.size(), 1U);
  const auto& device = source.samplers[0]->identity().device;
  EXPECT_EQ(device.model, "NVIDIA H200");
  EXPECT_EQ(device.memory_total_bytes, 150754820096ULL);
  EXPECT_EQ(device.memory_free_bytes, 150000000000ULL);
}

TEST(OpenNvml, LeavesUnsetWhatTheDriverDoesNotTell) {
  FakeDriver driver(R"({"fake_nvml": 1, "driver": "450.248.02", "gpus": [
      {"model": "A100-40G", "errors": {"nvmlDeviceGetCudaComputeCapability": "NOT_SUPPORTED",
                                       "nvmlDeviceGetMemoryInfo": "NOT_SUPPORTED"}}]})",
                    "libfakenvml-450.so");
  const auto source = driver.open();
  ASSERT_EQ(source.samplers.size(), 1U);
  const auto& device = source.samplers[0]->identity().device;
  EXPECT_FALSE(device.memory_total_bytes);
  EXPECT_FALSE(device.memory_free_bytes);
  EXPECT_FALSE(device.compute_capability);
}

TEST(OpenNvml, TakesTheNumaNodeFromTheKernelWhereTheDriverDoesNotTell) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped",
    "errors": {"nvmlDeviceGetMemoryAffinity": "NOT_SUPPORTED"},
    "gpus": [{"pci": "00000001:2B:00.0"}, {"pci": "00000002:2B:00.0"}]})");
  driver.put("sys/bus/pci/devices/0001:2b:00.0/numa_node", "3\n");
  driver.put("sys/bus/pci/devices/0002:2b:00.0/numa_node", "-1\n");
  const auto source = driver.open();
  EXPECT_EQ(source.samplers[0]->identity().numa_node, 3U);
  EXPECT_FALSE(source.samplers[1]->identity().numa_node) << "the firmware does not tell";
}

TEST(OpenNvml, ListsGpusInPciOrder) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
      {"uuid": "GPU-far", "pci": "00000000:AF:00.0"}, {"uuid": "GPU-near", "pci": "00000000:1B:00.0"},
      {"model": "B200", "uuid": "GPU-fast", "pci": "00000000:C1:00.0"}]})");
  const auto source = driver.open();
  ASSERT_EQ(source.samplers.size(), 3U);
  struct Row {
    const char* uuid;
    std::uint32_t driver_index;
    std::uint32_t cuda_ordinal;
  };
  const Row rows[] = {{"GPU-near", 1, 1}, {"GPU-far", 0, 2}, {"GPU-fast", 2, 0}};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto& identity = source.samplers[i]->identity();
    EXPECT_EQ(identity.device.index, i);
    EXPECT_EQ(identity.device.uuid, rows[i].uuid);
    EXPECT_EQ(identity.driver_index, rows[i].driver_index);
    EXPECT_EQ(identity.cuda_ordinal, rows[i].cuda_ordinal);
  }
  auto options = driver.options();
  options.cuda_visible_devices = "GPU-far";
  const auto hidden = driver.open(options);
  EXPECT_FALSE(hidden.samplers[0]->identity().cuda_ordinal);
  EXPECT_EQ(hidden.samplers[1]->identity().cuda_ordinal, 0U);
}

TEST(OpenNvml, AGpuThatCannotBeOpenedStaysInTheList) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
      {"lost": {"from": 0}}, {"uuid": "GPU-well"}]})");
  const auto source = driver.open();
  ASSERT_EQ(source.samplers.size(), 2U);
  auto& lost = *source.samplers[0];
  EXPECT_EQ(lost.identity().device.index, 0U) << "its number is no other GPU's";
  EXPECT_EQ(lost.identity().driver_index, 0U);
  EXPECT_FALSE(lost.identity().device.uuid);
  EXPECT_FALSE(lost.identity().cuda_ordinal);
  EXPECT_EQ(driver.visit(lost).lost_reason, "GPU is lost (NVML 15)");
  EXPECT_FALSE(lost.energy_joules(driver.watch));
  const auto& well = source.samplers[1]->identity();
  EXPECT_EQ(well.device.uuid, "GPU-well");
  EXPECT_EQ(well.device.index, 1U);
  EXPECT_EQ(well.cuda_ordinal, 0U) << "CUDA counts only what opens";
}

TEST(OpenNvml, TheOthersAreInPciOrderAroundAGpuThatCannotBeOpened) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
      {"uuid": "GPU-far", "pci": "00000000:AF:00.0"}, {"lost": {"from": 0}},
      {"uuid": "GPU-near", "pci": "00000000:1B:00.0"}]})");
  const auto source = driver.open();
  ASSERT_EQ(source.samplers.size(), 3U);
  EXPECT_EQ(source.samplers[0]->identity().device.uuid, "GPU-near");
  EXPECT_FALSE(source.samplers[1]->identity().device.uuid);
  EXPECT_EQ(source.samplers[1]->identity().driver_index, 1U);
  EXPECT_EQ(source.samplers[2]->identity().device.uuid, "GPU-far");
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(source.samplers[i]->identity().device.index, i);
  }
}

// As a GPU of another container, which the driver lists all the same.
TEST(OpenNvml, AGpuThatOthersMayOpenIsBarredAndALostOneIsNot) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
      {"errors": {"nvmlDeviceGetHandleByIndex_v2": "NO_PERMISSION"}},
      {"lost": {"from": 0}}, {}]})");
  const auto source = driver.open();
  ASSERT_EQ(source.samplers.size(), 3U);
  EXPECT_TRUE(source.samplers[0]->identity().is_barred);
  EXPECT_FALSE(source.samplers[1]->identity().is_barred);
  EXPECT_FALSE(source.samplers[2]->identity().is_barred);
}

TEST(OpenNvml, AGpuThatHangsDoesNotHoldUpTheOthers) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
      {"uuid": "GPU-a"}, {"hang": {"from": 0, "until": 9}}, {"uuid": "GPU-c"}]})");
  {
    const auto source = driver.open();
    ASSERT_EQ(source.samplers.size(), 3U);
    EXPECT_EQ(source.samplers[0]->identity().device.uuid, "GPU-a");
    EXPECT_EQ(source.samplers[2]->identity().device.uuid, "GPU-c");
    EXPECT_EQ(source.samplers[1]->identity().driver_index, 1U);
    EXPECT_FALSE(source.samplers[1]->identity().device.uuid);
    EXPECT_TRUE(driver.visit(*source.samplers[0]).readings.has(Reading::GpuEnergy));
    const auto hung = driver.visit(*source.samplers[1]);
    EXPECT_EQ(hung.lost_reason, "it did not answer when it was opened");
    EXPECT_EQ(hung.call_count, 0U);
    driver.at(10);  // lets the call return, for which the end of the source waits
  }
  const auto again = driver.open();
  EXPECT_TRUE(again.samplers[1]->identity().device.uuid) << "a new start finds it well";
}

TEST(OpenNvml, SaysWhyThereIsNothing) {
  FakeDriver none(R"({"fake_nvml": 1, "gpus": []})");
  const auto empty = open_nvml(none.options(), none.watch);
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(empty.error().message, "the NVIDIA driver has no GPU");
  FakeDriver broken(
      R"({"fake_nvml": 1, "gpus": [{}], "errors": {"nvmlInit_v2": "DRIVER_NOT_LOADED"}})");
  EXPECT_EQ(open_nvml(broken.options(), broken.watch).error().message,
            "the NVIDIA driver does not start: Driver Not Loaded (NVML 9)");
  auto nowhere = none.options();
  nowhere.libraries = {"libno-such-nvml.so.1"};
  EXPECT_EQ(open_nvml(nowhere, none.watch).error().message,
            "no NVIDIA driver (libno-such-nvml.so.1)");
}

TEST(OpenNvml, AnIntegratedGpuSharesTheMachinesMemory) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [{"unified_memory": true}]})");
  const auto source = driver.open();
  EXPECT_TRUE(source.samplers[0]->identity().has_unified_memory);
  EXPECT_FALSE(source.samplers[0]->identity().device.memory_total_bytes);
  const auto sample = driver.visit(*source.samplers[0]);
  EXPECT_FALSE(sample.readings.has(Reading::GpuMemoryUsed));
  EXPECT_TRUE(sample.errors.empty());
}

TEST(OpenNvml, NoticesALiveMpsDaemon) {
  FakeDriver driver(kOneGpu);
  const std::string pid_file = "run/mps/nvidia-cuda-mps-control.pid";
  auto options = driver.options();
  options.mps_pipe_directory = "/run/mps";
  const auto has_server = [&] {
    return driver.open(options).samplers[0]->identity().has_mps_server;
  };
  EXPECT_FALSE(has_server());
  driver.put(pid_file, "4711\n");
  EXPECT_FALSE(has_server()) << "no such process";
  driver.put("proc/4711/comm", "nvidia-cuda-mps\n");
  EXPECT_TRUE(has_server());
  driver.put(pid_file, "junk");
  EXPECT_FALSE(has_server());
}

TEST(OpenNvml, ListsSlicesAfterTheirGpu) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
    {"model": "H200", "uuid": "GPU-cut", "load": 0.5,
     "activity": {"sm": 0.8},
     "mig": [{"profile": "1g.18gb", "index": 0, "uuid": "MIG-a", "gpu_instance": 7},
             {"profile": "3g.71gb", "index": 3, "uuid": "MIG-b", "gpu_instance": 2, "load": 1}],
     "processes": [{"pid": 41, "memory_bytes": 1000, "gpu_instance": 7, "compute_instance": 0},
                   {"pid": 42, "memory_bytes": 5000, "gpu_instance": 2, "compute_instance": 0}]},
    {"model": "H200", "uuid": "GPU-whole"}]})");
  const auto source = driver.open();
  ASSERT_EQ(source.samplers.size(), 4U);
  EXPECT_EQ(source.samplers[0]->identity().is_mig_on, true);
  const auto& slice = source.samplers[2]->identity();
  EXPECT_EQ(slice.device.uuid, "MIG-b");
  EXPECT_EQ(slice.device.index, 1U);
  EXPECT_EQ(slice.parent, "GPU-cut");
  EXPECT_EQ(slice.mig_profile, "3g.71gb");
  EXPECT_EQ(slice.gpu_instance, 2U);
  EXPECT_EQ(slice.compute_instance, 0U);
  EXPECT_EQ(slice.device.memory_total_bytes, 71ULL << 30);
  EXPECT_EQ(source.samplers[3]->identity().device.uuid, "GPU-whole");
  EXPECT_EQ(source.samplers[3]->identity().device.index, 1U);
  EXPECT_EQ(source.links.device_count, 2U) << "slices have no links";

  // The GPU has no utilisation of its own any more; a slice has memory, activity and processes.
  driver.at(10);
  driver.watch.counts.clear();
  EXPECT_FALSE(
      driver.visit(*source.samplers[0], {Tier::Fast}).readings.has(Reading::GpuUtilization));
  EXPECT_EQ(driver.watch.counts.count("nvmlDeviceGetUtilizationRates"), 0U);
  EXPECT_EQ(driver.visit(*source.samplers[2], {Tier::Fast}).call_count, 0U);
  driver.visit(*source.samplers[2]);
  driver.at(11);
  const auto sample = driver.visit(*source.samplers[2]);
  EXPECT_TRUE(sample.errors.empty());
  EXPECT_EQ(sample.readings.get(Reading::GpuMemorySize), 71.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(sample.readings.get(Reading::GpuMemoryUsed), 5000.0);
  EXPECT_NEAR(sample.readings.get(Reading::GpuSmActive).value(), 0.8, 1e-9);
  EXPECT_FALSE(sample.readings.has(Reading::GpuPowerInstant));
  EXPECT_FALSE(sample.readings.has(Reading::GpuPcieSent));
  ASSERT_EQ(sample.processes.value().size(), 1U);
  EXPECT_EQ((*sample.processes)[0].memory_bytes, 5000U);
}

TEST(OpenNvml, JoinsGpusBySwitchesPairsAndPcie) {
  FakeDriver fabric(R"({"fake_nvml": 1, "clock": "stepped", "nvlink": "switch", "gpus": [
      {"values": {"nvlink_links_down": 3}}, {}]})");
  const auto switched = fabric.open().links;
  ASSERT_EQ(switched.device_count, 2U);
  EXPECT_EQ(switched.labels[0].kind, LinkKind::Self);
  EXPECT_EQ(switched.labels[1].kind, LinkKind::NvLink);
  EXPECT_EQ(switched.labels[1].width, 15U) << "as many as the one with fewer";
  EXPECT_EQ(switched.labels[2].width, 15U);

  FakeDriver mixed(R"({"fake_nvml": 1, "clock": "stepped", "nvlink": [[0, 1, 4]], "gpus": [
    {"model": "A100-80G", "numa_node": 0, "host_bridge": 0, "pcie_tree": 0, "pcie_switch": 0},
    {"model": "A100-80G", "numa_node": 0, "host_bridge": 0, "pcie_tree": 0, "pcie_switch": 0},
    {"model": "A100-80G", "numa_node": 0, "host_bridge": 0, "pcie_tree": 0, "pcie_switch": 0},
    {"model": "A100-80G", "numa_node": 0, "host_bridge": 0, "pcie_tree": 0, "pcie_switch": 1},
    {"model": "A100-80G", "numa_node": 0, "host_bridge": 0, "pcie_tree": 1, "pcie_switch": 2},
    {"model": "A100-80G", "numa_node": 0, "host_bridge": 1, "pcie_tree": 2, "pcie_switch": 3},
    {"model": "A100-80G", "numa_node": 1, "host_bridge": 2, "pcie_tree": 3, "pcie_switch": 4}]})");
  const auto links = mixed.open().links;
  ASSERT_EQ(links.device_count, 7U);
  const LinkKind first[] = {LinkKind::Self, LinkKind::NvLink, LinkKind::Pix, LinkKind::Pxb,
                            LinkKind::Phb,  LinkKind::Node,   LinkKind::Sys};
  for (std::size_t b = 0; b < 7; ++b) {
    EXPECT_EQ(links.labels[b].kind, first[b]) << b;
    EXPECT_EQ(links.labels[b * 7].kind, first[b]) << b;
  }
  EXPECT_EQ(links.labels[1].width, 4U);
}

TEST(NvmlProcesses, HaveNamesOfThisPidNamespaceOrTheDriver) {
  for (const int entry_bytes : {24, 32}) {
    FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "process_entry_bytes": )" +
                      std::to_string(entry_bytes) + R"(, "gpus": [{"processes": [
        {"pid": 11, "memory_bytes": 7340032, "name": "not asked for"},
        {"pid": 12, "memory_bytes": null},
        {"pid": 13, "memory_bytes": 4096, "name": "far\naway\""},
        {"pid": 14, "memory_bytes": 1, "kind": "graphics"},
        {"pid": 15, "memory_bytes": 2, "kind": "mps"}]}]})");
    driver.put("proc/11/comm", "python3\n");
    driver.put("proc/12/comm", "evil\n\"}\x1b[2J\n");
    driver.put("proc/14/comm", "Xorg\n");
    driver.put("proc/15/comm", "client\n");
    const auto source = driver.open();
    const auto sample = driver.visit(*source.samplers[0], {Tier::Slow});
    ASSERT_TRUE(sample.processes);
    std::map<std::string, GpuProcess> by_name;
    for (const auto& process : *sample.processes) by_name[process.command] = process;
    ASSERT_EQ(by_name.size(), 5U);
    EXPECT_EQ(sample.readings.get(Reading::GpuProcessCount), 5.0);
    EXPECT_EQ(by_name["python3"].pid, 11U);
    EXPECT_EQ(by_name["python3"].memory_bytes, 7340032U);
    EXPECT_EQ(by_name["python3"].kind, GpuProcessKind::Compute);
    EXPECT_FALSE(by_name["evil\n\"}\x1b[2J"].memory_bytes) << "the driver does not know";
    EXPECT_EQ(by_name["far\naway\""].pid, 0U) << "of another pid namespace";
    EXPECT_EQ(by_name["far\naway\""].memory_bytes, 4096U);
    EXPECT_EQ(by_name["Xorg"].kind, GpuProcessKind::Graphics);
    EXPECT_EQ(by_name["client"].kind, GpuProcessKind::Mps);
  }
}

TEST(NvmlProcesses, AreAllListedWhenTheyAreMany) {
  std::string processes;
  for (int i = 0; i < 300; ++i) {
    processes += (i == 0 ? "" : ",") + std::string(R"({"pid": )") + std::to_string(1000 + i) + "}";
  }
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [{"processes": [)" + processes +
                    "]}]}");
  const auto source = driver.open();
  const auto sample = driver.visit(*source.samplers[0], {Tier::Slow});
  EXPECT_EQ(sample.processes.value().size(), 300U);
  EXPECT_TRUE(sample.errors.empty());
}

TEST(NvmlProcesses, OfTheFirstVersionAreRead) {
  FakeDriver driver(R"({"fake_nvml": 1, "driver": "450.248.02", "clock": "stepped", "gpus": [
      {"model": "A100-40G", "processes": [{"pid": 11, "memory_bytes": 5},
                                           {"pid": 12, "memory_bytes": null}]}]})",
                    "libfakenvml-450.so");
  driver.put("proc/11/comm", "one\n");
  driver.put("proc/12/comm", "two\n");
  const auto source = driver.open();
  const auto sample = driver.visit(*source.samplers[0], {Tier::Slow});
  ASSERT_EQ(sample.processes.value().size(), 2U);
  EXPECT_EQ((*sample.processes)[0].memory_bytes, 5U);
  EXPECT_EQ((*sample.processes)[1].command, "two");
  EXPECT_FALSE((*sample.processes)[1].memory_bytes);
}

constexpr auto kNoTime = Duration(0);

TEST(NvmlEvents, CarryTheNumberOfTheirDevice) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
    {"pci": "00000000:AF:00.0", "xids": [{"at": 1, "xid": 31}, {"at": 2, "xid": 79},
                                           {"at": 2, "xid": 79}]},
    {"pci": "00000000:1B:00.0", "values": {"recovery_action": 2},
     "events": [{"at": 2, "kind": "double_bit_ecc"}, {"at": 3, "kind": "recovery_action"}]}]})");
  const auto source = driver.open();
  ASSERT_NE(source.events, nullptr);
  EXPECT_TRUE(source.events->wait(kNoTime)->empty());
  driver.at(1.5);
  const auto first = source.events->wait(kNoTime);
  ASSERT_EQ(first->size(), 1U);
  EXPECT_EQ((*first)[0].device, 1U) << "the second on the bus";
  EXPECT_EQ((*first)[0].kind, DeviceEventKind::Xid);
  EXPECT_EQ((*first)[0].code, 31U);
  driver.at(5);
  const auto rest = source.events->wait(kNoTime);
  ASSERT_EQ(rest->size(), 4U);
  int xids = 0;
  int ecc = 0;
  for (const auto& event : *rest) {
    if (event.kind == DeviceEventKind::Xid) {
      ++xids;
      EXPECT_EQ(event.code, 79U);
      EXPECT_EQ(event.device, 1U);
    } else if (event.kind == DeviceEventKind::EccUncorrected) {
      ++ecc;
      EXPECT_EQ(event.device, 0U);
    } else {
      EXPECT_EQ(event.code, 2U) << "what the field says";
      EXPECT_EQ(event.device, 0U);
    }
  }
  EXPECT_EQ(xids, 2) << "a repeat counts";
  EXPECT_EQ(ecc, 1);
}

TEST(NvmlEvents, OfTheOtherGpusGoOnWhenOneIsLost) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
    {"lost": {"from": 5}}, {"xids": [{"at": 6, "xid": 13}]}],
    "errors": {"nvmlEventSetWait_v2": {"code": "GPU_IS_LOST", "from": 5, "until": 7}}})");
  const auto source = driver.open();
  driver.at(5.5);
  const auto wait = source.events->wait(kNoTime);
  ASSERT_TRUE(wait) << wait.error().message;
  EXPECT_TRUE(wait->empty());
}

TEST(NvmlEvents, ADriverThatReportsNoneIsUnavailable) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [{}],
    "errors": {"nvmlEventSetWait_v2": {"code": "UNKNOWN", "from": 5}}})");
  const auto source = driver.open();
  driver.at(6);
  const auto wait = source.events->wait(kNoTime);
  ASSERT_FALSE(wait);
  EXPECT_EQ(wait.error().kind, ErrorKind::Unavailable);
}

}  // namespace
}  // namespace muster
