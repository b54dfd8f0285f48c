#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "hw/amd/amd_card.h"
#include "hw/amd/amd_processes.h"
#include "hw/device_sources.h"
#include "hw/testdata/tree.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

const fs::path kMachines = MUSTER_SOURCE_DIR "/src/hw/testdata";

DeviceSample visit(DeviceSampler& sampler, TierSet due = all_tiers()) {
  CountingWatch watch;
  DeviceSample sample;
  sampler.sample(due, watch, sample);
  EXPECT_EQ(watch.entered, watch.left);
  EXPECT_EQ(sample.call_count, static_cast<std::uint32_t>(watch.left));
  return sample;
}

double value(const DeviceSample& sample, Reading reading) {
  EXPECT_TRUE(sample.readings.has(reading)) << reading_info(reading).name;
  return sample.readings.get(reading).value_or(-1e9);
}

// Some cards of the eight, which a test may change, and what the compute driver says of all.
class ChangedCards {
 public:
  explicit ChangedCards(std::initializer_list<const char*> cards) {
    for (const auto* card : cards) copy(fs::path("sys/class/drm") / card);
    copy("sys/class/kfd/kfd/topology/nodes/0");
    copy("sys/class/kfd/kfd/topology/nodes/1");
  }
  void copy(const fs::path& folder, const fs::path& to = {}) {
    const auto target = root() / (to.empty() ? folder : to);
    fs::create_directories(target);
    fs::copy(kMachines / "mi300x_8" / folder, target, fs::copy_options::recursive);
  }
  const TestTree& tree() const { return tree_; }
  const fs::path& root() const { return tree_.root(); }

 private:
  TestTree tree_;
};

TEST(OpenAmd, FindsEightCardsInPciOrderWithTheirLinks) {
  const auto source = open_amd(kMachines / "mi300x_8");
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ(source->samplers.size(), 8U);
  const auto& last = source->samplers[7]->identity();
  EXPECT_EQ(last.device.name(), "rocm:7");
  EXPECT_EQ(last.device.model, "AMD Instinct MI300X");
  EXPECT_EQ(last.device.uuid, "GPU-2e2b9c4f1c3d0a07");
  EXPECT_EQ(last.device.pci_address, "00000000:E5:00.0");
  EXPECT_EQ(last.device.memory_total_bytes, 205822885888U);
  EXPECT_EQ(last.device.memory_free_bytes, 205822885888U - (8ULL << 30));
  EXPECT_EQ(last.numa_node, 1U);
  EXPECT_EQ(last.driver_index, 8U) << "card8";
  EXPECT_EQ(last.vbios, "113-M3000100-103");
  EXPECT_EQ(last.driver_version, "6.12.12");
  EXPECT_FALSE(last.has_unified_memory);
  ASSERT_EQ(source->links.device_count, 8U);
  for (std::uint32_t a = 0; a < 8; ++a) {
    for (std::uint32_t b = 0; b < 8; ++b) {
      const auto& label = source->links.labels[a * 8 + b];
      EXPECT_EQ(label.kind, a == b ? LinkKind::Self : LinkKind::Xgmi);
      EXPECT_EQ(label.width, a == b ? 0U : 1U);
    }
  }
}

TEST(OpenAmd, ReadsWhatACardTells) {
  const auto source = open_amd(kMachines / "mi300x_8");
  ASSERT_TRUE(source);
  const auto sample = visit(*source->samplers[2]);
  EXPECT_TRUE(sample.errors.empty());
  EXPECT_FALSE(sample.lost_reason);
  EXPECT_DOUBLE_EQ(value(sample, Reading::GpuUtilization), 0.92);
  EXPECT_EQ(value(sample, Reading::GpuPowerInstant), 602.0);
  EXPECT_EQ(value(sample, Reading::GpuEnergy), 3000.0);
  EXPECT_EQ(value(sample, Reading::GpuMemoryUsed), 3.0 * (1ULL << 30));
  EXPECT_EQ(value(sample, Reading::GpuTemperatureHotspot), 73.0);
  EXPECT_EQ(value(sample, Reading::GpuTemperatureMemory), 52.0);
  EXPECT_FALSE(sample.readings.has(Reading::GpuTemperatureCore)) << "no edge sensor";
  EXPECT_EQ(value(sample, Reading::GpuTemperatureHeadroom), 27.0) << "junction: 100 - 73";
  EXPECT_EQ(value(sample, Reading::GpuTemperatureLimitShutdown), 105.0);
  EXPECT_EQ(value(sample, Reading::GpuXgmiReceived), 7000.0 * 1024);
  EXPECT_EQ(value(sample, Reading::GpuPowerLimitEnforced), 750.0);
  EXPECT_EQ(value(sample, Reading::GpuClockMaxGraphics), 2.1e9);
  EXPECT_EQ(value(sample, Reading::GpuPcieGeneration), 5.0);
  EXPECT_EQ(value(sample, Reading::GpuPcieLanes), 16.0);
  EXPECT_EQ(value(sample, Reading::GpuPcieReplays), 2.0);
  EXPECT_EQ(value(sample, Reading::GpuEccUncorrectedVolatile), 2.0);
  EXPECT_EQ(value(sample, Reading::GpuEccCorrectedVolatile), 4.0) << "3 of umc, 1 of gfx";
  EXPECT_EQ(value(sample, Reading::GpuRetiredPagesDoubleBit), 1.0) << "the other one waits";
}

TEST(OpenAmd, ListsEachProcessOnTheGpusItUses) {
  const auto source = open_amd(kMachines / "mi300x_8");
  ASSERT_TRUE(source);
  const auto second = visit(*source->samplers[1]);
  ASSERT_EQ(second.processes->size(), 1U);
  EXPECT_EQ(second.processes->front().pid, 4242U);
  EXPECT_EQ(second.processes->front().command, "train");
  EXPECT_EQ(second.processes->front().memory_bytes, 1U << 28);
  EXPECT_TRUE(visit(*source->samplers[5]).processes->empty());
}

TEST(OpenAmd, NeedsOneReadForAFastVisit) {
  const auto source = open_amd(kMachines / "mi300x_8");
  ASSERT_TRUE(source);
  const auto sample = visit(*source->samplers[0], TierSet().set(0));
  EXPECT_EQ(sample.call_count, 1U);
  EXPECT_FALSE(sample.processes);
}

// From one look to the next the firmware counts 1,000 steps in 10 ms, 250 of them at the limit.
TEST(OpenAmd, TurnsResidenciesIntoSecondsAndReasons) {
  const ChangedCards machine({"card1"});
  const auto source = open_amd(machine.root());
  ASSERT_TRUE(source);
  auto& gpu = *source->samplers[0];
  EXPECT_FALSE(visit(gpu).readings.has(Reading::GpuClockEvents)) << "nothing to compare with";
  const fs::path path = "sys/class/drm/card1/device/gpu_metrics";
  auto bytes = *read_file(machine.root() / path);
  const auto put = [&](std::size_t offset, std::uint64_t number, int width) {
    for (int i = 0; i < width; ++i) bytes[offset + i] = static_cast<char>(number >> (8 * i));
  };
  put(32, 6000, 4);          // accumulation_counter, 5,000 before
  put(40, 450, 4);           // ppt_residency_acc, 200 before
  put(256, 301'000'000, 8);  // firmware_timestamp in 10 ns, 300,000,000 before
  machine.tree().write(path, bytes);
  const auto sample = visit(gpu);
  EXPECT_EQ(value(sample, Reading::GpuClockEvents), 4.0) << "the power cap";
  EXPECT_NEAR(value(sample, Reading::GpuThrottleSwPowerCap), 0.0025, 1e-12);
  EXPECT_EQ(value(sample, Reading::GpuThrottleSwThermal), 0.0);
  EXPECT_EQ(value(visit(gpu), Reading::GpuClockEvents), 0.0);
}

TEST(OpenAmd, TakesOtherFilesWhereTheTableIsUnknown) {
  const ChangedCards machine({"card1"});
  machine.tree().write("sys/class/drm/card1/device/gpu_metrics",
                       std::string("\x08\0\x09\x09____", 8));
  const auto source = open_amd(machine.root());
  ASSERT_TRUE(source);
  const auto sample = visit(*source->samplers[0]);
  EXPECT_DOUBLE_EQ(value(sample, Reading::GpuUtilization), 0.90);
  EXPECT_EQ(value(sample, Reading::GpuPowerInstant), 600.0);
  EXPECT_FALSE(sample.readings.has(Reading::GpuEnergy));
  EXPECT_TRUE(sample.errors.empty());
}

TEST(OpenAmd, SaysThatACardIsGone) {
  const ChangedCards machine({"card3", "card4"});
  const auto source = open_amd(machine.root());
  ASSERT_TRUE(source);
  fs::remove_all(machine.root() / "sys/class/drm/card3");
  const auto sample = visit(*source->samplers[0]);
  ASSERT_TRUE(sample.lost_reason);
  EXPECT_EQ(*sample.lost_reason, "the GPU is no longer there (ENODEV 19)");
  EXPECT_FALSE(visit(*source->samplers[1]).lost_reason);
}

TEST(OpenAmd, ShowsPartitionsAsSlicesOfTheirGpu) {
  ChangedCards machine({"card1", "card8"});
  const auto seed = *read_file(MUSTER_SOURCE_DIR "/src/hw/corpus/amd_metrics_fuzz/v1_8");
  machine.tree().write("sys/class/drm/card8/device/gpu_metrics", seed);
  machine.tree().write("sys/class/drm/card8/device/current_compute_partition", "DPX\n");
  const fs::path nodes = "sys/class/kfd/kfd/topology/nodes";
  machine.copy(nodes / "9", nodes / "2");  // the first partition, and the second below
  machine.tree().write(nodes / "3/gpu_id", "10099\n");
  machine.tree().write(
      nodes / "3/properties",
      "cpu_cores_count 0\nlocation_id " + std::to_string(1ULL << 28 | 0xe500) + "\ndomain 0\n");
  machine.tree().write(nodes / "3/mem_banks/0/properties", "size_in_bytes 1000\n");
  machine.tree().write(nodes / "3/mem_banks/0/used_memory", "400\n");
  const auto source = open_amd(machine.root());
  ASSERT_TRUE(source);
  ASSERT_EQ(source->samplers.size(), 4U) << "two GPUs, two slices of the second";
  const auto& slice = source->samplers[3]->identity();
  EXPECT_EQ(slice.parent, source->samplers[1]->identity().device.uuid);
  EXPECT_EQ(slice.device.index, 1U);
  EXPECT_EQ(slice.mig_profile, "DPX");
  EXPECT_EQ(source->links.device_count, 2U) << "slices have none";
  const auto sample = visit(*source->samplers[3]);
  EXPECT_DOUBLE_EQ(value(sample, Reading::GpuUtilization), 0.20);
  EXPECT_EQ(value(sample, Reading::GpuMemoryFree), 600.0);
  EXPECT_FALSE(sample.readings.has(Reading::GpuPowerInstant)) << "its GPU's";
}

TEST(OpenAmd, CountsTheMemoryOfAnApuOnce) {
  for (const auto* name : {"strix_halo", "phoenix"}) {
    const auto source = open_amd(kMachines / name);
    ASSERT_TRUE(source) << source.error().message;
    ASSERT_EQ(source->samplers.size(), 1U);
    const auto& identity = source->samplers[0]->identity();
    EXPECT_TRUE(identity.has_unified_memory) << name;
    EXPECT_TRUE(identity.device.has_unified_memory) << name;
    EXPECT_FALSE(identity.numa_node) << "-1";
    const auto sample = visit(*source->samplers[0]);
    const auto set_aside = name == std::string("phoenix") ? 1024.0 : 512.0;
    const auto mib = 1048576.0;
    EXPECT_EQ(value(sample, Reading::GpuMemorySize), (set_aside + 8192.0) * mib) << name;
    EXPECT_EQ(value(sample, Reading::GpuMemoryUsed), (256.0 + 1024.0) * mib) << name;
    // 7 GiB of GTT are free, but the system has only 4 GiB left.
    const auto free = (set_aside - 256.0 + 4096.0) * mib;
    EXPECT_EQ(value(sample, Reading::GpuMemoryFree), free) << name;
    EXPECT_EQ(identity.device.memory_free_bytes, static_cast<std::uint64_t>(free)) << name;
    EXPECT_EQ(value(sample, Reading::GpuTemperatureCore), 48.0) << name;
    // One client that is open twice, and another: 64 MiB + 1 MiB, and 2 MiB of GTT each.
    ASSERT_EQ(sample.processes->size(), 1U);
    EXPECT_EQ(sample.processes->front().command, "compositor");
    EXPECT_EQ(sample.processes->front().kind, GpuProcessKind::Graphics);
    EXPECT_EQ(sample.processes->front().memory_bytes, (64U + 2U + 1U + 2U) << 20);
  }
}

TEST(OpenAmd, TellsThePowerOfAnApusSocketApart) {
  const auto strix = open_amd(kMachines / "strix_halo");
  const auto told = visit(*strix->samplers[0]);
  EXPECT_DOUBLE_EQ(value(told, Reading::GpuPowerAverage), 30.0) << "graphics";
  EXPECT_DOUBLE_EQ(value(told, Reading::GpuModulePowerAverage), 55.0) << "cores included";
  const auto phoenix = open_amd(kMachines / "phoenix");
  const auto other = visit(*phoenix->samplers[0]);
  EXPECT_FALSE(other.readings.has(Reading::GpuPowerAverage));
  EXPECT_DOUBLE_EQ(value(other, Reading::GpuModulePowerAverage), 28.0);
  EXPECT_DOUBLE_EQ(value(other, Reading::GpuUtilization), 0.33) << "gpu_busy_percent";
}

TEST(OpenAmd, SaysWhereItLooked) {
  const TestTree tree;
  const auto source = open_amd(tree.root());
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(source.error().message, "no AMD GPU (no card of vendor 0x1002 in /sys/class/drm)");
}

TEST(KfdLinks, KnowsWidthsAndNodes) {
  KfdTopology topology;
  topology.links = {{.from = 1, .to = 2, .is_xgmi = true, .width = 4},
                    {.from = 1, .to = 9, .is_xgmi = true, .width = 1},
                    {.from = 2, .to = 3, .is_xgmi = false, .width = 1}};
  const auto matrix = kfd_links(topology, {1, 2, 3}, {0, 1, 1});
  EXPECT_EQ(matrix.labels[1].kind, LinkKind::Xgmi);
  EXPECT_EQ(matrix.labels[3].width, 4U) << "both ways";
  EXPECT_EQ(matrix.labels[2].kind, LinkKind::Sys) << "nodes 0 and 1";
  EXPECT_EQ(matrix.labels[5].kind, LinkKind::Node) << "both at node 1";
}

TEST(PcieGenerationOf, KnowsTheSpeeds) {
  EXPECT_EQ(pcie_generation_of("2.5 GT/s PCIe"), 1U);
  EXPECT_EQ(pcie_generation_of("64.0 GT/s PCIe"), 6U);
  EXPECT_FALSE(pcie_generation_of("Unknown"));
}

TEST(ParseDrmFdinfo, TakesOnlyItsOwnDriver) {
  EXPECT_FALSE(parse_drm_fdinfo("pos: 0\ndrm-driver: i915\ndrm-pdev: 0000:00:02.0\n"));
  EXPECT_FALSE(parse_drm_fdinfo("pos: 0\n"));
  const auto client = parse_drm_fdinfo(
      "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t3\n"
      "drm-memory-vram:\t2 MiB\ndrm-memory-gtt:\t512\n");
  ASSERT_TRUE(client);
  EXPECT_EQ(client->vram_bytes, 2U << 20);
  EXPECT_EQ(client->gtt_bytes, 512U);
}

}  // namespace
}  // namespace muster
