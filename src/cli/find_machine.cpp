// The machine as work is given to it. A GPU that is split into slices is not itself a device: its
// slices are, and giving work to both would use the same memory twice. A GPU that
// CUDA_VISIBLE_DEVICES hides stays in the list with the reason, so that naming it gives a better
// error than that it does not exist; so does one that is lost, with what its driver says of it.
// Without a driver there are no GPUs and a reason, and no error.

#include "cli/find_machine.h"

#include <algorithm>

#include "cli/lost_gpus.h"
#include "cli/places.h"
#include "cli/telemetry_options.h"
#include "hw/inventory.h"
#include "telemetry/collector.h"

namespace muster {
namespace {

bool is_split(const DeviceIdentity& gpu, const std::vector<DeviceIdentity>& all) {
  return std::any_of(all.begin(), all.end(), [&](const DeviceIdentity& other) {
    return other.parent && other.parent == gpu.device.uuid;
  });
}

std::optional<std::uint32_t> index_of_parent(const DeviceIdentity& slice,
                                             const std::vector<DeviceIdentity>& all) {
  for (const auto& other : all) {
    if (!other.parent && other.device.uuid == slice.parent) return other.device.index;
  }
  return std::nullopt;
}

// CUDA has no other name for a GPU than its UUID and its number. Numbers in PCI order are those of
// `machine` where all of its GPUs were opened, and none is split or may be.
bool is_number_certain(const DeviceIdentity& identity, const std::vector<DeviceIdentity>& all) {
  std::size_t gpu_count = 0;
  bool is_each_opened = identity.cuda_ordinal.has_value();
  bool is_each_placed = true;
  for (const auto& other : all) {
    if (other.device.kind != DeviceKind::Cuda) continue;
    if (other.parent || other.is_mig_on.value_or(false)) return false;
    ++gpu_count;
    is_each_opened &= other.device.uuid.has_value() || other.cuda_ordinal.has_value();
    is_each_placed &= other.device.pci_address.has_value();
  }
  return is_each_opened && (is_each_placed || gpu_count == 1);
}

}  // namespace

// A slice is named by the place of its GPU and its own: "cuda:0:1".
std::vector<Device> devices_for_work(const WatchedMachine& machine,
                                     const std::optional<std::string>& visible) {
  std::vector<Device> devices;
  for (const auto& identity : machine.devices) {
    if (identity.device.kind != DeviceKind::Cuda || is_split(identity, machine.devices)) continue;
    auto device = identity.device;
    device.has_unified_memory = identity.has_unified_memory;
    if (identity.parent) {
      const auto parent = index_of_parent(identity, machine.devices);
      if (!parent) continue;  // a slice without its GPU has no name
      device.slice = device.index;
      device.index = *parent;
    }
    if (!identity.cuda_ordinal && visible) device.hidden_by = "CUDA_VISIBLE_DEVICES=" + *visible;
    if (device.hidden_by.empty() && !device.uuid && !is_number_certain(identity, machine.devices)) {
      device.hidden_by = "its driver, which tells no UUID of it: its number may mean another";
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

std::optional<std::uint64_t> available_memory(const Config& config) {
  const auto options = collector_options(config);
  if (!options) return std::nullopt;
  MachineSources sources;
  sources.root = options->root;
  const auto inventory = find_inventory(sources);
  return inventory ? inventory->memory_available_bytes : std::nullopt;
}

Result<FoundMachine> find_machine(const Config& config, const Clock& clock, bool look_for_gpus,
                                  ToldLosses losses) {
  auto options = MUSTER_TRY(collector_options(config));
  FoundMachine found;
  MachineSources sources;
  sources.root = options.root;
  found.inventory = MUSTER_TRY(find_inventory(sources));
  // Without a worker there is nothing that could open them; who needs one says so.
  if (const auto worker = find_worker_program(config)) {
    found.inventory.standins = find_standins(worker->path);
  }
  if (!look_for_gpus) {
    found.inventory.gpu_absent_reason = "GPUs were not looked for";
    return found;
  }

  options.history = Duration{};
  const auto collector = Collector::start(options, clock);
  if (!collector) {
    found.inventory.gpu_absent_reason = collector.error().message;
    return found;
  }
  const auto& machine = (*collector)->machine();
  const auto variables = CudaVariables::of_environment();
  found.inventory.gpus = devices_for_work(machine, variables.visible);
  mark_lost(found.inventory.gpus, (*collector)->snapshot().devices,
            losses == ToldLosses::All ? CudaVariables{} : variables);
  found.inventory.gpu_absent_reason = machine.gpu_absent_reason;
  // The matrix is of whole GPUs: with slices in the list its rows would belong to other devices.
  if (machine.links.device_count == found.inventory.gpus.size()) found.links = machine.links;
  return found;
}

}  // namespace muster
