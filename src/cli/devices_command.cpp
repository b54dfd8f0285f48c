#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/command.h"
#include "hw/inventory.h"
#include "terminal/table.h"
#include "terminal/terminal_info.h"

namespace muster {
namespace {

CommandSpec devices_spec() {
  return {
      .name = "devices",
      .summary = "show what this machine has to compute with",
      .usage = "",
      .groups = {{"Output", {}, {{"--json", "", "the inventory as a JSON object"}}}},
      .examples =
          "  muster devices\n"
          "  muster devices --json | jq '.gpus[].uuid'\n",
  };
}

std::string memory_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? human_bytes(*bytes) : "-";
}

std::string describe(const Inventory& inventory, std::size_t width) {
  Table facts({{}, {.title = "", .may_shrink = true}});
  facts.add_row({"CPU", inventory.cpu_model.empty() ? "unknown" : inventory.cpu_model});
  facts.add_row(
      {"cores", fmt::format("{} in {} NUMA node{}; {} logical CPUs allowed", inventory.core_count,
                            inventory.numa_node_count, inventory.numa_node_count == 1 ? "" : "s",
                            inventory.allowed_cpus.size())});
  if (inventory.cpu_limit_cores) {
    facts.add_row({"CPU quota", fmt::format("{:g} cores (cgroup)", *inventory.cpu_limit_cores)});
  }
  facts.add_row({"memory", human_bytes(inventory.memory_total_bytes) +
                               (inventory.memory_limit_bytes
                                    ? ", of which " + human_bytes(*inventory.memory_limit_bytes) +
                                          " may be used (cgroup)"
                                    : "")});
  auto out = facts.render(width);
  if (!inventory.instruction_sets.empty()) {
    // Not cut: the last names are those that matter most.
    out += fmt::format("fast paths: {}\n", fmt::join(inventory.instruction_sets, " "));
  }

  Table devices({{"device"},
                 {"model", Align::Left, true},
                 {"cores", Align::Right},
                 {"memory", Align::Right},
                 {"UUID"}});
  for (const auto& device : inventory.cpus) {
    devices.add_row({device.name(), device.model, std::to_string(device.cpus.size()),
                     memory_text(device.memory_total_bytes), ""});
  }
  for (const auto& device : inventory.gpus) {
    devices.add_row({device.name(), device.model, "", memory_text(device.memory_total_bytes),
                     device.uuid.value_or("-")});
  }
  out += "\n" + devices.render(width);
  if (inventory.gpu_absent_reason) out += "no GPU: " + *inventory.gpu_absent_reason + "\n";
  return out;
}

template <typename T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json device_json(const Device& device) {
  nlohmann::ordered_json json{{"name", device.name()},
                              {"kind", device_kind_name(device.kind)},
                              {"model", device.model},
                              {"uuid", or_null(device.uuid)},
                              {"pci_address", or_null(device.pci_address)},
                              {"memory_total_bytes", or_null(device.memory_total_bytes)}};
  if (device.kind == DeviceKind::Cpu) json["cpus"] = device.cpus;
  return json;
}

std::string inventory_json(const Inventory& inventory) {
  auto cpus = nlohmann::ordered_json::array();
  auto gpus = nlohmann::ordered_json::array();
  for (const auto& device : inventory.cpus) cpus.push_back(device_json(device));
  for (const auto& device : inventory.gpus) gpus.push_back(device_json(device));
  const nlohmann::ordered_json json{{"cpu_model", inventory.cpu_model},
                                    {"core_count", inventory.core_count},
                                    {"numa_node_count", inventory.numa_node_count},
                                    {"allowed_cpus", inventory.allowed_cpus},
                                    {"cpu_limit_cores", or_null(inventory.cpu_limit_cores)},
                                    {"instruction_sets", inventory.instruction_sets},
                                    {"memory_total_bytes", inventory.memory_total_bytes},
                                    {"memory_limit_bytes", or_null(inventory.memory_limit_bytes)},
                                    {"cpus", std::move(cpus)},
                                    {"gpus", std::move(gpus)},
                                    {"gpu_absent_reason", or_null(inventory.gpu_absent_reason)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<int> run_devices(const CommandContext& context) {
  const auto inventory = MUSTER_TRY(find_inventory());
  const bool wants_json = context.arguments.has("--json");
  MUSTER_TRY(context.output.append(
      wants_json ? inventory_json(inventory)
                 : describe(inventory, inspect_terminal(STDOUT_FILENO).width)));
  return 0;
}

}  // namespace

Command devices_command() { return {devices_spec(), run_devices}; }

}  // namespace muster
