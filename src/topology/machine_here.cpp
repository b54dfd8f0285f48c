// Turns what was found into the planner's machine. Figures that the driver does not report come
// from the catalogue by name, or stay absent. A machine with GPUs has its CPUs as host memory
// alone, one without has them as devices: memory counts once. A GPU that shares the host's memory
// takes its part off what is left for the host and for the GPUs after it, for the same reason.

#include "topology/machine_here.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "spec/gpu_catalogue.h"
#include "topology/links.h"
#include "topology/machine_builder.h"

namespace muster {
namespace {

// What is available now rather than what is built in: other programs keep what they have.
std::uint64_t host_bytes(const Inventory& inventory) {
  const auto limit = inventory.memory_limit_bytes.value_or(inventory.memory_total_bytes);
  return inventory.memory_available_bytes.value_or(std::min(limit, inventory.memory_total_bytes));
}

// The driver's memory goes before the catalogue's: part of it may be set aside, by ECC for one.
MachineDevice gpu_of(const Device& found, MachineBuilder& builder, const GpuFacts* gpu) {
  DeviceClass known = gpu != nullptr ? device_class(*gpu) : DeviceClass{};
  known.model = gpu != nullptr ? known.model : found.model;
  known.kind = found.kind;
  known.memory_bytes = found.memory_total_bytes.value_or(known.memory_bytes);
  MachineDevice device;
  device.device_class = builder.add_class(known);
  device.free_bytes = found.memory_free_bytes.value_or(known.memory_bytes);
  device.uuid = found.uuid;
  return device;
}

MachineDevice cpu_of(const Device& found, MachineBuilder& builder, std::uint64_t bytes) {
  MachineDevice device;
  device.device_class =
      builder.add_class({found.model, DeviceKind::Cpu, found.memory_total_bytes.value_or(0),
                         std::nullopt, std::nullopt});
  device.free_bytes = bytes;
  device.core_count = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(found.cpus.size()));
  return device;
}

// What is available is known for the machine alone, so each node gets its share by size.
std::vector<MachineDevice> cpus_of(const Inventory& inventory, MachineBuilder& builder) {
  double total = 0.0;
  for (const auto& cpu : inventory.cpus) {
    total += static_cast<double>(cpu.memory_total_bytes.value_or(0));
  }
  const auto available = static_cast<double>(host_bytes(inventory));
  std::vector<MachineDevice> devices;
  for (const auto& cpu : inventory.cpus) {
    const auto own = static_cast<double>(cpu.memory_total_bytes.value_or(0));
    const auto share = total > 0.0 ? own / total : 1.0 / static_cast<double>(inventory.cpus.size());
    devices.push_back(cpu_of(cpu, builder, static_cast<std::uint64_t>(available * share)));
  }
  return devices;
}

// The links that were read; unknown ones are the slowest.
LinkMatrix matrix_of(std::uint32_t n, const LinkMatrix* links) {
  if (links != nullptr && links->device_count == n) return *links;
  LinkMatrix matrix{n, std::vector<LinkLabel>(std::size_t{n} * n, {LinkKind::Sys, 0})};
  for (std::uint32_t i = 0; i < n; ++i) matrix.labels[i * n + i] = {LinkKind::Self, 0};
  return matrix;
}

}  // namespace

Machine machine_from(const Inventory& inventory, const LinkMatrix* links) {
  MachineBuilder builder("here");
  std::vector<MachineDevice> devices;
  std::vector<const GpuFacts*> gpus;
  std::uint64_t host = 0;
  if (inventory.gpus.empty()) {
    devices = cpus_of(inventory, builder);
    gpus.resize(devices.size(), nullptr);
  } else {
    host = host_bytes(inventory);
    for (const auto& found : inventory.gpus) {
      gpus.push_back(find_gpu_by_driver_name(found.model));
      devices.push_back(gpu_of(found, builder, gpus.back()));
      if (!found.has_unified_memory) continue;
      auto& free_bytes = devices.back().free_bytes;
      free_bytes = std::min(free_bytes, host);
      host -= free_bytes;
    }
  }
  const auto n = static_cast<std::uint32_t>(devices.size());
  const auto matrix = matrix_of(n, links);
  // One node of a machine that was found: far below the limits of a machine that is written.
  const auto added = builder.add_nodes(1, devices, links_of(matrix, gpus), host);
  MUSTER_CHECK(added.has_value());
  if (host > 0) {
    const auto* slowest = *std::min_element(gpus.begin(), gpus.end(), [](auto* a, auto* b) {
      return (a != nullptr ? a->pcie_generation : 0) < (b != nullptr ? b->pcie_generation : 0);
    });
    if (slowest != nullptr) {
      builder.machine().host_link_bytes_per_second =
          pcie_bytes_per_second(slowest->pcie_generation);
    }
  }
  return builder.take();
}

}  // namespace muster
