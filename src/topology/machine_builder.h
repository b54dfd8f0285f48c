#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/machine.h"

namespace muster {

/// A machine has at most so many devices, so many types of them, nodes of so many kinds of links,
/// and in the tables of all those kinds so many links.
inline constexpr std::uint64_t kMachineDevicesMax = 100'000;
inline constexpr std::size_t kMachineClassesMax = 1'000;
inline constexpr std::size_t kMachineLinkTablesMax = 1'000;
inline constexpr std::size_t kMachineLinksMax = 4'000'000;

/// Puts a Machine together node by node; equal classes and equal links are kept once.
///
/// Not thread-safe; owned by one function.
class MachineBuilder {
 public:
  explicit MachineBuilder(std::string name) { machine_.name = std::move(name); }

  /// The index of a class; one that is there already is not added again.
  std::uint32_t add_class(const DeviceClass& device_class);

  /// `count` nodes with these devices, of which `device_class`, `free_bytes`, `uuid` and `parent`
  /// are read; the rest is filled in.
  ///
  /// Errors: InvalidArgument when the machine gets too large, or a node has several uuids times
  /// `count`.
  Status add_nodes(std::uint64_t count, const std::vector<MachineDevice>& devices, NodeLinks links,
                   std::uint64_t host_bytes);

  Machine& machine() { return machine_; }
  Machine take() { return std::move(machine_); }

 private:
  Result<std::uint32_t> add_links(NodeLinks links);

  Machine machine_;
  std::map<DeviceKind, std::uint32_t> next_index_;
  std::size_t link_count_ = 0;  // in all tables
};

}  // namespace muster
