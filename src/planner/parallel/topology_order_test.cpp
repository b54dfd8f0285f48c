#include "planner/parallel/topology_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

#include "planner/parallel/parallel_degree.h"
#include "topology/links.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

// A node of one type of GPU with these links.
Machine node_with(const NodeLinks& links) {
  auto machine = *parse_machine("sim:" + std::to_string(links.device_count) + "xRTX3090");
  machine.node_links = {links};
  return machine;
}

Machine machine_in(const std::string& name) {
  std::ifstream file(MUSTER_SOURCE_DIR "/src/topology/testdata/" + name + ".txt");
  std::stringstream text;
  text << file.rdbuf();
  const auto matrix = *parse_link_matrix(text.str());
  const std::vector<const GpuFacts*> gpus(matrix.device_count, *find_gpu("RTX3090"));
  return node_with(links_of(matrix, gpus));
}

std::vector<std::uint32_t> all_of(const Machine& machine) {
  std::vector<std::uint32_t> devices(machine.devices.size());
  std::iota(devices.begin(), devices.end(), 0U);
  return devices;
}

// The devices as a pipeline of groups visits them.
std::vector<std::uint32_t> visited(const Machine& machine, std::uint32_t group_size) {
  const auto groups = tensor_groups(machine, all_of(machine), group_size);
  std::vector<std::uint32_t> devices;
  for (const auto i : pipeline_order(machine, groups)) {
    devices.insert(devices.end(), groups[i].begin(), groups[i].end());
  }
  return devices;
}

using Order = std::vector<std::uint32_t>;

// Two GPUs to a layer, two stages, bridges 0-2 and 1-3.
TEST(PipelineOrder, VisitsPairsWithABridge) {
  EXPECT_EQ(visited(machine_in("vllm_7958"), 2), (Order{0, 2, 1, 3}));
  EXPECT_EQ(visited(machine_in("k8s_device_plugin_546"), 2), (Order{0, 2, 1, 3, 4, 5, 6, 7}));
}

// One GPU to a stage: each bridge is a hop.
TEST(PipelineOrder, GoesOverTheBridges) {
  EXPECT_EQ(visited(machine_in("vllm_7958"), 1), (Order{0, 2, 1, 3}));
  EXPECT_EQ(visited(machine_in("k8s_device_plugin_436"), 1), (Order{0, 1, 2, 3}));
}

TEST(PipelineOrder, IsTheIndexWhereAllLinksAreAlike) {
  const auto machine = *parse_machine("sim:2x8xH100");
  Order wanted(16);
  std::iota(wanted.begin(), wanted.end(), 0U);
  EXPECT_EQ(visited(machine, 1), wanted);
}

NodeLinks random_links(std::mt19937_64& random, std::uint32_t count) {
  NodeLinks links{count, std::vector<Link>(std::size_t{count} * count)};
  for (std::uint32_t a = 0; a < count; ++a) {
    for (std::uint32_t b = 0; b < a; ++b) {
      const Link link{LinkKind::Pix, 0, static_cast<double>(1 + random() % 6) * 1e9};
      links.links[a * count + b] = link;
      links.links[b * count + a] = link;
    }
  }
  return links;
}

// The slowest hop of a path, then its sum of times.
std::pair<double, double> worth(const NodeLinks& links, const Order& order) {
  double slowest = 1e18;
  double seconds = 0.0;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    const double bytes = links.between(order[i], order[i + 1]).bytes_per_second;
    slowest = std::min(slowest, bytes);
    seconds += 1.0 / bytes;
  }
  return {slowest, seconds};
}

TEST(PipelineOrder, EqualsTheBestOfAllPaths) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const auto links = random_links(random, 6);
    Order path(6);
    std::iota(path.begin(), path.end(), 0U);
    auto best = worth(links, path);
    do {
      const auto found = worth(links, path);
      if (found.first > best.first || (found.first == best.first && found.second < best.second)) {
        best = found;
      }
    } while (std::next_permutation(path.begin(), path.end()));
    const auto order = visited(node_with(links), 1);
    EXPECT_EQ(worth(links, order).first, best.first);
    EXPECT_NEAR(worth(links, order).second, best.second, 1e-12 * best.second);
  }
}

// Beyond 16 groups: still every one once, and no worse than the order of their indices.
TEST(PipelineOrder, VisitsManyGroupsOnce) {
  std::mt19937_64 random(10);
  const auto links = random_links(random, 40);
  auto order = visited(node_with(links), 1);
  Order index(40);
  std::iota(index.begin(), index.end(), 0U);
  EXPECT_LT(worth(links, order).second, 0.5 * worth(links, index).second);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, index);
}

TEST(SlowestHop, IsTheNetworkWhereThePipelineLeavesANode) {
  const auto machine = *parse_machine("sim:2x2xH100,network=50GB");
  const std::vector<DeviceGroup> groups{{0}, {1}, {2}, {3}};
  EXPECT_EQ(slowest_hop(machine, groups, pipeline_order(machine, groups)), 50e9);
  const Order inside{0, 1};
  EXPECT_NEAR(*slowest_hop(machine, groups, inside), 370.8e9, 1.0);
}

}  // namespace
}  // namespace muster
