// KFD describes the machine as nodes with links, one node for each partition of a GPU. Files are
// short lines of a name and a number; what is missing counts as 0, since old kernels write fewer of
// them. Only XGMI links are taken from here; two GPUs without one are told apart by their NUMA
// nodes alone. Sources are in the header.

#include "hw/amd/amd_topology.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/text.h"
#include "hw/kernel_file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// More than any machine has; a wrong root is not walked to its end.
constexpr std::uint32_t kNodesMax = 4096;
constexpr std::int64_t kXgmi = 11;  // CRAT_IOLINK_TYPE_XGMI

// Lines "simd_count 1216".
class Properties {
 public:
  explicit Properties(const fs::path& file) {
    const auto text = small_text(file);
    if (!text) return;
    for (const auto& line : split(*text, '\n')) {
      const auto space = line.find(' ');
      if (space == std::string::npos) continue;
      const auto value = leading_number(std::string_view(line).substr(space + 1));
      if (value) values_[line.substr(0, space)] = *value;
    }
  }

  std::int64_t get(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? 0 : found->second;
  }

 private:
  std::map<std::string, std::int64_t> values_;
};

void read_links(const fs::path& folder, std::uint32_t node, std::vector<KfdLink>& links) {
  for (std::uint32_t i = 0; i < kNodesMax; ++i) {
    const auto file = folder / std::to_string(i) / "properties";
    std::error_code ignored;
    if (!fs::exists(file, ignored)) return;
    const Properties link(file);
    KfdLink found{node, static_cast<std::uint32_t>(link.get("node_to")), link.get("type") == kXgmi,
                  1};
    const auto one = link.get("min_bandwidth");
    const auto all = link.get("max_bandwidth");
    constexpr std::int64_t kWidthMax = 64;
    if (one > 0 && all % one == 0 && all / one >= 1 && all / one <= kWidthMax) {
      found.width = static_cast<std::uint32_t>(all / one);
    }
    links.push_back(found);
  }
}

KfdGpu gpu_of(const fs::path& folder, std::uint32_t node, std::uint64_t gpu_id,
              const Properties& properties) {
  KfdGpu gpu;
  gpu.node = node;
  gpu.gpu_id = gpu_id;
  const auto location = static_cast<std::uint64_t>(properties.get("location_id"));
  gpu.partition = static_cast<std::uint32_t>((location >> 28) & 0xf);
  gpu.pci = static_cast<std::uint64_t>(properties.get("domain")) << 16 | (location & 0xffff);
  gpu.has_cpu_cores = properties.get("cpu_cores_count") > 0;
  const auto bank = folder / "mem_banks/0";
  gpu.memory_bytes = static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, Properties(bank / "properties").get("size_in_bytes")));
  gpu.used_memory_file = bank / "used_memory";
  return gpu;
}

}  // namespace

KfdTopology read_kfd_topology(const fs::path& root) {
  KfdTopology topology;
  const auto nodes = root / "sys/class/kfd/kfd/topology/nodes";
  for (std::uint32_t node = 0; node < kNodesMax; ++node) {
    const auto folder = nodes / std::to_string(node);
    std::error_code ignored;
    if (!fs::exists(folder, ignored)) break;
    const auto id = small_text(folder / "gpu_id");
    const auto gpu_id = id ? leading_number(*id).value_or(0) : 0;
    if (gpu_id <= 0) continue;  // a node of CPUs
    const Properties properties(folder / "properties");
    topology.gpus.push_back(gpu_of(folder, node, static_cast<std::uint64_t>(gpu_id), properties));
    read_links(folder / "io_links", node, topology.links);
  }
  return topology;
}

LinkMatrix kfd_links(const KfdTopology& topology,
                     const std::vector<std::optional<std::uint32_t>>& nodes,
                     const std::vector<std::optional<std::uint32_t>>& numa_nodes) {
  const auto n = static_cast<std::uint32_t>(nodes.size());
  LinkMatrix matrix{n, std::vector<LinkLabel>(std::size_t{n} * n, {LinkKind::Sys, 0})};
  const auto label = [&](std::uint32_t a, std::uint32_t b) -> LinkLabel& {
    return matrix.labels[std::size_t{a} * n + b];
  };
  for (std::uint32_t a = 0; a < n; ++a) {
    label(a, a) = {LinkKind::Self, 0};
    for (std::uint32_t b = 0; b < a; ++b) {
      const bool is_near = numa_nodes[a] && numa_nodes[a] == numa_nodes[b];
      label(a, b) = label(b, a) = {is_near ? LinkKind::Node : LinkKind::Sys, 0};
    }
  }
  const auto at = [&](std::uint32_t node) {
    return static_cast<std::uint32_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
  };
  for (const auto& link : topology.links) {
    const auto a = at(link.from);
    const auto b = at(link.to);
    if (!link.is_xgmi || a == n || b == n || a == b) continue;
    label(a, b) = label(b, a) = {LinkKind::Xgmi, link.width};
  }
  return matrix;
}

}  // namespace muster
