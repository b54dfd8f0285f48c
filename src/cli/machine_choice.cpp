#include "cli/machine_choice.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/file.h"
#include "hw/device_names.h"
#include "hw/inventory.h"
#include "topology/machine_here.h"
#include "topology/machine_json.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

constexpr std::string_view kHere = "here";

}  // namespace

Result<ChosenMachine> choose_machine(const std::string& text) {
  if (text.starts_with("sim:")) return ChosenMachine{MUSTER_TRY(parse_machine(text)), false};
  const std::filesystem::path file(text);
  if (std::filesystem::is_regular_file(file)) {
    const auto content = MUSTER_TRY(read_file(file));
    return ChosenMachine{MUSTER_TRY(parse_machine_json(text, content)), false};
  }
  auto inventory = MUSTER_TRY(find_inventory());
  if (text == kHere) return ChosenMachine{machine_from(inventory), true};
  const auto devices = parse_devices(text, inventory, std::nullopt);
  if (!devices) {
    return Error{ErrorKind::NotFound,
                 fmt::format("--machine {}: no such file, and neither here, devices of here such "
                             "as 2xcpu, nor a simulated machine such as sim:8xH100-80G",
                             text)};
  }
  inventory.cpus.clear();
  inventory.gpus.clear();
  for (const auto& device : *devices) {
    auto& list = device.kind == DeviceKind::Cpu ? inventory.cpus : inventory.gpus;
    list.push_back(device);
  }
  ChosenMachine chosen{machine_from(inventory), true};
  chosen.machine.name = text;
  return chosen;
}

}  // namespace muster
