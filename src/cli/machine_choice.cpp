// What --machine may mean, in this order: a simulated machine, a machine file, this machine, some
// devices of this machine. Only the last two may start a driver. Links between GPUs are kept for
// those that are chosen; where the driver's list does not match the inventory they are dropped,
// since a wrong link is worse than an unknown one.

#include "cli/machine_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "cli/lost_gpus.h"
#include "hw/device_names.h"
#include "topology/machine_here.h"
#include "topology/machine_json.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

constexpr std::string_view kHere = "here";

// The part of `links` that is about `chosen`, which are some of `all` in any order.
LinkMatrix links_among(const LinkMatrix& links, const std::vector<Device>& all,
                       const std::vector<Device>& chosen) {
  if (links.device_count != all.size()) return {};
  std::vector<std::size_t> places;
  for (const auto& device : chosen) {
    const auto found = std::find_if(
        all.begin(), all.end(), [&](const Device& other) { return other.name() == device.name(); });
    if (found == all.end()) return {};
    places.push_back(static_cast<std::size_t>(found - all.begin()));
  }
  // Row by row, in the order of the chosen devices, as the matrix of the whole machine is laid out.
  LinkMatrix part{static_cast<std::uint32_t>(places.size()), {}};
  for (const auto row : places) {
    for (const auto column : places) {
      part.labels.push_back(links.labels[row * all.size() + column]);
    }
  }
  return part;
}

// The GPUs that a worker can be given, or where none is left the CPUs, as `auto` would take them.
ChosenMachine without_lost_gpus(FoundMachine found) {
  std::vector<Device> devices;
  for (const auto& gpu : found.inventory.gpus) {
    if (gpu.is_usable()) devices.push_back(gpu);
  }
  if (devices.empty()) devices = found.inventory.cpus;
  const auto lost = lost_gpus_notice("auto", found.inventory, devices);
  return {.machine = machine_of(std::move(found), devices, std::string(kHere)),
          .is_here = true,
          .lost_gpus = lost.value_or("")};
}

// Whoever writes this means devices, and one of them may be missing as it is lost.
bool names_devices(const std::string& text) {
  const auto pieces = split(text, ',');
  return std::all_of(pieces.begin(), pieces.end(),
                     [](const std::string& piece) { return is_device_name_form(trim(piece)); });
}

}  // namespace

Result<ChosenMachine> choose_machine(const std::string& text, const Config& config,
                                     const Clock& clock) {
  if (text.starts_with("sim:")) return ChosenMachine{MUSTER_TRY(parse_machine(text)), false};
  const std::filesystem::path file(text);
  if (std::filesystem::is_regular_file(file)) {
    const auto content = MUSTER_TRY(read_file(file));
    return ChosenMachine{MUSTER_TRY(parse_machine_json(text, content)), false};
  }
  auto [inventory, links] =
      MUSTER_TRY(find_machine(config, clock, text == kHere || may_name_gpus(text)));
  const bool is_any_lost = !lost_gpus_text(inventory).empty();
  if (text == kHere) {
    if (is_any_lost) return without_lost_gpus({std::move(inventory), std::move(links)});
    return ChosenMachine{machine_from(inventory, &links), true};
  }
  const auto devices = parse_devices(text, inventory, std::nullopt);
  if (!devices && is_any_lost && names_devices(text)) return devices.error();
  if (!devices) {
    return Error{ErrorKind::NotFound,
                 fmt::format("--machine {}: no such file, and neither here, devices of here such "
                             "as 2xcpu, nor a simulated machine such as sim:8xH100-80G",
                             text)};
  }
  const auto lost = lost_gpus_notice(text, inventory, *devices);
  return ChosenMachine{machine_of({std::move(inventory), std::move(links)}, *devices, text), true,
                       lost.value_or("")};
}

// The rest of the inventory (memory of the host, its limits) stays, since it counts whatever
// devices are chosen.
Machine machine_of(FoundMachine found, const std::vector<Device>& devices, std::string name) {
  auto& inventory = found.inventory;
  const auto part = links_among(found.links, inventory.gpus, devices);
  inventory.cpus.clear();
  inventory.gpus.clear();
  for (const auto& device : devices) {
    auto& list = device.kind == DeviceKind::Cpu ? inventory.cpus : inventory.gpus;
    list.push_back(device);
  }
  auto machine = machine_from(inventory, &part);
  machine.name = std::move(name);
  return machine;
}

}  // namespace muster
