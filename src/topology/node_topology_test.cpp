#include "topology/node_topology.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "topology/links.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

std::string text_of(const std::string& name) {
  std::ifstream file(MUSTER_SOURCE_DIR "/src/topology/testdata/" + name + ".txt");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The links of a fixture, all GPUs being of a type.
NodeLinks links_in(const std::string& name, const char* gpu) {
  const auto matrix = parse_link_matrix(text_of(name));
  EXPECT_TRUE(matrix) << matrix.error().message;
  const std::vector<const GpuFacts*> gpus(matrix->device_count, *find_gpu(gpu));
  return links_of(*matrix, gpus);
}

DeviceGroup first(std::uint32_t count) {
  DeviceGroup devices(count);
  std::iota(devices.begin(), devices.end(), 0U);
  return devices;
}

using Groups = std::vector<DeviceGroup>;

TEST(ParseLinkMatrix, ReadsWhatNvidiaSmiPrints) {
  const auto links = links_in("k8s_device_plugin_436", "A100-PCIE-80G");
  ASSERT_EQ(links.device_count, 4U);
  EXPECT_EQ(links.between(0, 1).kind, LinkKind::NvLink);
  EXPECT_EQ(links.between(0, 1).width, 12U);
  // Twelve links of 20 GB/s, as NCCL counts them for compute capability 8.0.
  EXPECT_DOUBLE_EQ(links.between(0, 1).bytes_per_second, 240e9);
  EXPECT_EQ(links.between(2, 3).kind, LinkKind::Node);
  // PCIe 4.0 x16 is twice NCCL's 12 GB/s; between the sockets no more than 10.
  EXPECT_DOUBLE_EQ(links.between(2, 3).bytes_per_second, 24e9);
  EXPECT_EQ(links.between(1, 2).kind, LinkKind::Sys);
  EXPECT_DOUBLE_EQ(links.between(1, 2).bytes_per_second, 10e9);
  EXPECT_EQ(links.between(3, 3).kind, LinkKind::Self);
}

TEST(ParseLinkMatrix, ReadsTheUnderlinedHeaderOfATerminal) {
  const auto matrix = parse_link_matrix(
      "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\x1b[0m\r\nGPU0\t X \tPIX\t0-3\r\nGPU1\tPIX\t X \t0-3\r\n"
      "\r\nLegend:\r\n  X    = Self\r\n");
  ASSERT_TRUE(matrix) << matrix.error().message;
  EXPECT_EQ(matrix->device_count, 2U);
}

TEST(ParseLinkMatrix, NamesWhatIsWrong) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const auto& [text, message] :
       {Case{"", "the link matrix has no header of GPUs: GPU0 GPU1 …"},
        Case{" GPU0 GPU1\nGPU0 X SYS\n", "the link matrix lacks the row: GPU1"},
        Case{" GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS\n", "the link matrix has a short row: GPU1"},
        Case{" GPU0 GPU1\nGPU0 X NV\nGPU1 NV X\n", "the link matrix has an unknown link: NV"},
        Case{" GPU0 GPU1\nGPU0 X SYS\nGPU1 PIX X\n",
             "the link matrix differs in its two directions: GPU0 and GPU1"},
        Case{" GPU0 GPU1\nGPU0 SYS X\nGPU1 X SYS\n",
             "the link matrix has an X beside its diagonal, or none on it, in the row: GPU0"}}) {
    const auto matrix = parse_link_matrix(text);
    ASSERT_FALSE(matrix) << text;
    EXPECT_EQ(matrix.error().message, message);
  }
}

TEST(BestGroups, AreThePairsWithABridge) {
  EXPECT_EQ(best_groups(links_in("k8s_device_plugin_436", "A100-PCIE-80G"), first(4), 2),
            (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(best_groups(links_in("k8s_device_plugin_546", "A100-PCIE-80G"), first(8), 2),
            (Groups{{0, 2}, {1, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(best_groups(links_in("k8s_device_plugin_1193", "RTXA6000-48G"), first(8), 2),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(best_groups(links_in("vllm_7958", "RTX3090-24G"), first(4), 2),
            (Groups{{0, 2}, {1, 3}}));
}

// All links are SYS, so the order decides: it keeps the four of a socket together.
TEST(BestGroups, GoByIndexWhereAllLinksAreAlike) {
  const auto links = links_in("go_gpuallocator_17", "RTX4090-24G");
  EXPECT_EQ(best_groups(links, first(8), 4), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(best_groups(links, first(8), 2), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
}

TEST(BestGroups, DoNotLeaveAnIsland) {
  // Bridges hold pairs only, so there is no group of four.
  EXPECT_TRUE(best_groups(links_in("vllm_7958", "RTX3090-24G"), first(4), 4).empty());
  // One pair has a bridge; the two others reach each other over PCIe.
  EXPECT_EQ(islands(links_in("k8s_device_plugin_436", "A100-PCIE-80G"), first(4)),
            (Groups{{0, 1}, {2, 3}}));
}

// Five devices: of the pairs (0 1) and (2 3) have a switch between them, 4 is far from all.
TEST(BestGroups, LeaveOutTheOneThatIsFarAway) {
  const auto matrix = parse_link_matrix(
      " GPU0 GPU1 GPU2 GPU3 GPU4\n"
      "GPU0 X SYS SYS SYS PIX\n"
      "GPU1 SYS X PIX SYS SYS\n"
      "GPU2 SYS PIX X SYS SYS\n"
      "GPU3 SYS SYS SYS X SYS\n"
      "GPU4 PIX SYS SYS SYS X\n");
  ASSERT_TRUE(matrix) << matrix.error().message;
  const std::vector<const GpuFacts*> gpus(5, nullptr);
  EXPECT_EQ(best_groups(links_of(*matrix, gpus), first(5), 2), (Groups{{0, 4}, {1, 2}}));
}

// Against all divisions of eight devices with random links: the slowest group, then the sum.
double best_by_trying(const NodeLinks& links, DeviceGroup left, std::uint32_t size, double slowest,
                      double sum) {
  if (left.empty()) return slowest * 1e6 + sum;
  double best = -1.0;
  const auto leader = left.front();
  for (std::uint32_t mask = 0; mask < 1U << left.size(); ++mask) {
    if (static_cast<std::uint32_t>(__builtin_popcount(mask)) != size || (mask & 1U) == 0) continue;
    DeviceGroup group;
    DeviceGroup rest;
    for (std::size_t i = 0; i < left.size(); ++i) {
      ((mask >> i & 1U) != 0 ? group : rest).push_back(left[i]);
    }
    EXPECT_EQ(group.front(), leader);
    const auto speed = group_bytes_per_second(links, group);
    best = std::max(best, best_by_trying(links, rest, size, std::min(slowest, speed), sum + speed));
  }
  return best;
}

TEST(BestGroups, EqualTheBestOfAllDivisions) {
  std::uint64_t state = 5;
  for (int round = 0; round < 50; ++round) {
    NodeLinks links{8, std::vector<Link>(64)};
    for (std::uint32_t a = 0; a < 8; ++a) {
      for (std::uint32_t b = 0; b < a; ++b) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const Link link{LinkKind::Pix, 0, 1.0 + static_cast<double>(state >> 60)};
        links.links[a * 8 + b] = link;
        links.links[b * 8 + a] = link;
      }
    }
    for (const std::uint32_t size : {2U, 4U}) {
      double slowest = 1e9;
      double sum = 0.0;
      for (const auto& group : best_groups(links, first(8), size)) {
        slowest = std::min(slowest, group_bytes_per_second(links, group));
        sum += group_bytes_per_second(links, group);
      }
      EXPECT_DOUBLE_EQ(slowest * 1e6 + sum, best_by_trying(links, first(8), size, 1e9, 0.0))
          << "round " << round << " size " << size;
    }
  }
}

// Four who ask for one GPU each, then two who ask for two: no bridge may be left half used.
TEST(PickDevices, KeepsPairsWholeForTheNext) {
  const auto links = links_in("k8s_device_plugin_1193", "RTXA6000-48G");
  auto free = first(8);
  const auto take = [&](std::uint32_t count) {
    const auto picked = pick_devices(links, free, count);
    for (const auto device : picked) std::erase(free, device);
    return picked;
  };
  EXPECT_EQ(take(1), (DeviceGroup{0}));
  EXPECT_EQ(take(1), (DeviceGroup{1}));
  EXPECT_EQ(take(1), (DeviceGroup{2}));
  EXPECT_EQ(take(1), (DeviceGroup{3}));
  EXPECT_EQ(take(2), (DeviceGroup{4, 5}));
  EXPECT_EQ(take(2), (DeviceGroup{6, 7}));
  EXPECT_TRUE(take(1).empty());
}

TEST(BytesPerSecondBetween, IsTheNetworkBetweenNodesAndUnknownBetweenSlices) {
  auto machine = *parse_machine("sim:2x8xH100-80G,network=50GB");
  // Eighteen links of 20.6 GB/s to the switch.
  EXPECT_NEAR(*bytes_per_second_between(machine, 0, 7), 370.8e9, 1.0);
  EXPECT_DOUBLE_EQ(*bytes_per_second_between(machine, 7, 8), 50e9);
  machine.devices[0].parent = "GPU-1";
  machine.devices[1].parent = "GPU-1";
  EXPECT_FALSE(bytes_per_second_between(machine, 0, 1));
}

}  // namespace
}  // namespace muster
