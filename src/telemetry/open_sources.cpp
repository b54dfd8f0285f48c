// Which drivers are there, in the order that numbers the devices: NVIDIA, AMD, then the CPUs.
// Runs in the sampler, since opening a driver can hang or crash like any other call. A driver
// that is absent is a reason, not an error: the CPUs are watched all the same.

#include "telemetry/open_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/environment.h"
#include "base/file.h"
#include "hw/device_sources.h"
#include "hw/inventory.h"
#include "spec/standin_device.h"
#include "topology/links.h"
#include "topology/machine_json.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

// The load of simulated devices is the same at every start, so that screens can be compared.
constexpr std::uint64_t kSimulatedSeed = 1;

void add(OpenedSources& opened, DeviceSource source) {
  auto& machine = opened.machine;
  opened.first_devices.push_back(static_cast<std::uint32_t>(machine.devices.size()));
  for (const auto& sampler : source.samplers) {
    machine.devices.push_back(sampler->identity());
    opened.samplers.push_back(sampler.get());
  }
  // The links are those of the first GPUs: of one vendor's, where a machine has both.
  if (machine.links.device_count == 0 && machine.devices.size() == source.samplers.size()) {
    machine.links = source.links;
  }
  opened.sources.push_back(std::move(source));
}

Result<OpenedSources> open_simulation(const std::string& text, const Clock& clock) {
  const bool is_file = !text.starts_with("sim:");
  const auto content = is_file ? MUSTER_TRY(read_file(text)) : std::string();
  const auto machine =
      is_file ? MUSTER_TRY(parse_machine_json(text, content)) : MUSTER_TRY(parse_machine(text));
  if (machine.nodes.size() != 1 || machine.devices.size() > kNodeDevicesMax) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("a machine that is watched has one node of at most {} devices: {} has "
                             "{} and {}",
                             kNodeDevicesMax, text, machine.nodes.size(), machine.devices.size())};
  }
  const auto& node = machine.node_links[machine.nodes.front().links];
  LinkMatrix links{node.device_count, {}};
  for (const auto& link : node.links) links.labels.push_back({link.kind, link.width});
  OpenedSources opened;
  opened.machine.name = machine.name;
  add(opened, open_simulated(machine, links, clock, kSimulatedSeed));
  return opened;
}

}  // namespace

std::string device_key(const DeviceIdentity& identity) {
  if (identity.device.uuid) return *identity.device.uuid;
  if (identity.device.pci_address) return *identity.device.pci_address;
  return identity.device.name();
}

Result<OpenedSources> open_sources(const Watch& watch, const Clock& clock, CallWatch& calls) {
  OpenedSources opened;
  if (watch.simulated) {
    opened = MUSTER_TRY(open_simulation(*watch.simulated, clock));
  } else {
    MachineSources sources;
    sources.root = watch.root;
    NvmlOptions options;
    if (!watch.nvml_libraries.empty()) options.libraries = watch.nvml_libraries;
    options.root = watch.root;
    options.cuda_visible_devices = environment_variable("CUDA_VISIBLE_DEVICES");
    options.cuda_device_order = environment_variable("CUDA_DEVICE_ORDER");
    options.mps_pipe_directory = environment_variable("CUDA_MPS_PIPE_DIRECTORY");
    auto nvidia = open_nvml(options, calls);
    auto amd = open_amd(watch.root);
    const auto absent_reason = nvidia ? std::string() : nvidia.error().message;
    if (nvidia) add(opened, *std::move(nvidia));
    if (amd) add(opened, *std::move(amd));
    if (opened.machine.devices.empty()) opened.machine.gpu_absent_reason = absent_reason;
    if (const auto folder = environment_variable(kStandinReportsVariable.data())) {
      if (auto standins = open_standins(*folder)) add(opened, *std::move(standins));
    }
    const auto inventory = MUSTER_TRY(find_inventory(sources));
    add(opened, open_cpu(inventory, watch.root));
  }
  for (std::size_t i = 0; i < opened.samplers.size(); ++i) {
    if (std::ranges::count(watch.left_out, device_key(opened.machine.devices[i])) > 0) {
      opened.samplers[i] = nullptr;
    }
  }
  return opened;
}

}  // namespace muster
