// The matrix of `nvidia-smi topo -m`, which people can read already, with a legend of what occurs
// in it.
// Labels follow that tool wherever it has one for a link. Where full names of devices make the
// table too wide, its columns are headed by numbers only. The legend lists just the kinds of
// link that occur.
#include "views/topology_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include "terminal/table.h"
#include "terminal/text_width.h"
#include "topology/links.h"
#include "views/reading_text.h"

namespace muster {
namespace {

struct LinkMeaning {
  LinkKind kind;
  std::string_view label;
  std::string_view meaning;
};
// Source: the legend of nvidia-smi topo -m.
constexpr std::array kMeanings{
    LinkMeaning{LinkKind::Self, "X", "the device itself"},
    LinkMeaning{LinkKind::NvLink, "NV#", "so many NVLinks"},
    LinkMeaning{LinkKind::Xgmi, "XGMI#", "so many Infinity Fabric links"},
    LinkMeaning{LinkKind::Pix, "PIX", "at most one PCIe bridge"},
    LinkMeaning{LinkKind::Pxb, "PXB", "several PCIe bridges, without the host bridge"},
    LinkMeaning{LinkKind::Phb, "PHB", "a PCIe host bridge"},
    LinkMeaning{LinkKind::Node, "NODE", "host bridges of one NUMA node"},
    LinkMeaning{LinkKind::Sys, "SYS", "the link between NUMA nodes"},
};

const DeviceStatus* cpu_of_node(const TelemetrySnapshot& snapshot, std::uint32_t numa_node) {
  for (const auto& status : snapshot.devices) {
    if (!is_gpu(status) && status.identity.numa_node == numa_node) return &status;
  }
  return nullptr;
}

// "0-3,8,10-11"
std::string ranges_text(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    auto end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += end == i + 1 ? std::to_string(numbers[i])
                         : fmt::format("{}-{}", numbers[i], numbers[end - 1]);
    i = end;
  }
  return text;
}

std::vector<Column> columns_for(const std::vector<const DeviceStatus*>& gpus, bool has_names) {
  std::vector<Column> columns{{""}};
  for (const auto* gpu : gpus) {
    columns.push_back({has_names ? gpu->name : std::to_string(gpu->identity.device.index)});
  }
  columns.push_back({.title = "NUMA", .leaves = 1});
  columns.push_back({.title = "nearest CPUs", .leaves = 2, .goes_below = true});
  return columns;
}

Table matrix(const TelemetrySnapshot& snapshot, const std::vector<const DeviceStatus*>& gpus,
             bool has_names) {
  Table table(columns_for(gpus, has_names));
  const auto count = snapshot.links.device_count;
  for (std::size_t a = 0; a < count; ++a) {
    std::vector<TableCell> cells{gpus[a]->name};
    for (std::size_t b = 0; b < count; ++b) {
      cells.emplace_back(link_label_name(snapshot.links.labels[a * count + b]));
    }
    const auto node = gpus[a]->identity.numa_node;
    const auto* cpu = node ? cpu_of_node(snapshot, *node) : nullptr;
    cells.emplace_back(node ? std::to_string(*node) : "-");
    cells.emplace_back(
        cpu ? fmt::format("{} ({})", cpu->name, ranges_text(cpu->identity.device.cpus)) : "-");
    table.add_row(std::move(cells));
  }
  return table;
}

std::string legend(const LinkMatrix& links) {
  std::set<LinkKind> kinds;
  for (const auto& label : links.labels) kinds.insert(label.kind);
  Table table({{}, {}});
  for (const auto& row : kMeanings) {
    if (kinds.contains(row.kind)) table.add_row({std::string(row.label), std::string(row.meaning)});
  }
  return table.render(kUnboundedWidth);
}

std::size_t widest_line(std::string_view text) {
  std::size_t widest = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    widest = std::max(widest, display_width(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return widest;
}

}  // namespace

std::string describe_topology(const TelemetrySnapshot& snapshot, const TerminalInfo& terminal) {
  std::vector<const DeviceStatus*> gpus;
  for (const auto& status : snapshot.devices) {
    if (is_gpu(status) && !is_slice(status)) gpus.push_back(&status);
  }
  const auto count = snapshot.links.device_count;
  if (gpus.empty()) {
    return "no GPU: " + printable(snapshot.gpu_absent_reason.value_or("none was found")) + "\n";
  }
  if (count == 0 || count > gpus.size()) {
    return "the driver does not tell how these GPUs are linked\n";
  }
  gpus.resize(count);
  const auto rendered = [&](bool has_names) {
    return matrix(snapshot, gpus, has_names).render(terminal.width, terminal.has_color);
  };
  auto out = rendered(true);
  if (widest_line(out) > terminal.width) out = rendered(false);
  return out + "\n" + legend(snapshot.links);
}

}  // namespace muster
