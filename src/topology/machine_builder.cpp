// Machines of a thousand equal nodes are common in simulations, so equal device classes and link
// tables are stored once and referred to by index. Equality is by value and searched linearly, as
// the kinds of a machine are few; bounds on devices and tables refuse a description before memory
// is taken for it. Devices are numbered by kind over all nodes, which is what their names go by.

#include "topology/machine_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace muster {
namespace {

bool is_same(const DeviceClass& a, const DeviceClass& b) {
  return a.model == b.model && a.kind == b.kind && a.memory_bytes == b.memory_bytes &&
         a.flops_per_second == b.flops_per_second &&
         a.memory_bytes_per_second == b.memory_bytes_per_second;
}

// Rates are compared exactly: equal tables come from the same arithmetic on the same figures.
bool is_same(const NodeLinks& a, const NodeLinks& b) {
  return a.device_count == b.device_count &&
         std::equal(a.links.begin(), a.links.end(), b.links.begin(), b.links.end(),
                    [](const Link& x, const Link& y) {
                      return x.kind == y.kind && x.width == y.width &&
                             x.bytes_per_second == y.bytes_per_second;
                    });
}

}  // namespace

std::uint32_t MachineBuilder::add_class(const DeviceClass& device_class) {
  auto& classes = machine_.classes;
  const auto found = std::find_if(classes.begin(), classes.end(), [&](const DeviceClass& known) {
    return is_same(known, device_class);
  });
  if (found != classes.end()) return static_cast<std::uint32_t>(found - classes.begin());
  classes.push_back(device_class);
  return static_cast<std::uint32_t>(classes.size() - 1);
}

Result<std::uint32_t> MachineBuilder::add_links(NodeLinks links) {
  auto& known = machine_.node_links;
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const auto& one) { return is_same(one, links); });
  if (found != known.end()) return static_cast<std::uint32_t>(found - known.begin());
  link_count_ += links.links.size();
  if (known.size() == kMachineLinkTablesMax || link_count_ > kMachineLinksMax) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("a machine has nodes of at most {} kinds, with {} links in all",
                    with_thousands(kMachineLinkTablesMax), with_thousands(kMachineLinksMax))};
  }
  known.push_back(std::move(links));
  return static_cast<std::uint32_t>(known.size() - 1);
}

// The product is never formed before it is known to fit: both factors may come from a text.
Status MachineBuilder::add_nodes(std::uint64_t count, const std::vector<MachineDevice>& devices,
                                 NodeLinks links, std::uint64_t host_bytes) {
  const auto total = machine_.devices.size();
  if (!devices.empty() && count > (kMachineDevicesMax - total) / devices.size()) {
    return Error{ErrorKind::InvalidArgument, fmt::format("a machine has at most {} devices",
                                                         with_thousands(kMachineDevicesMax))};
  }
  const bool has_uuid = std::any_of(devices.begin(), devices.end(),
                                    [](const MachineDevice& one) { return one.uuid.has_value(); });
  if (has_uuid && count > 1) {
    return Error{ErrorKind::InvalidArgument,
                 "a device with a uuid is in one node only, not in several equal ones"};
  }
  const auto link_index = MUSTER_TRY(add_links(std::move(links)));
  machine_.devices.reserve(total + count * devices.size());
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto node = static_cast<std::uint32_t>(machine_.nodes.size());
    machine_.nodes.push_back({static_cast<std::uint32_t>(machine_.devices.size()),
                              static_cast<std::uint32_t>(devices.size()), link_index, host_bytes});
    for (auto device : devices) {
      device.kind = machine_.classes[device.device_class].kind;
      device.index = next_index_[device.kind]++;
      device.node = node;
      machine_.devices.push_back(std::move(device));
    }
  }
  return Done{};
}

}  // namespace muster
