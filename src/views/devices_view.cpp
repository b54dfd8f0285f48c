#include "views/devices_view.h"

#include <fmt/format.h>

#include "base/text.h"
#include "terminal/table.h"
#include "terminal/text_width.h"
#include "views/reading_text.h"

namespace muster {
namespace {

// Bytes in all: as the driver says, which knows it of slices too.
std::string size_text(const DeviceStatus& status) {
  if (const auto& bytes = status.identity.device.memory_total_bytes) return human_bytes(*bytes);
  const auto size = memory_use(status).size;
  return size ? human_bytes(static_cast<std::uint64_t>(*size)) : "-";
}

std::string used_text(const DeviceStatus& status) {
  const auto used = memory_use(status).used;
  return used ? human_bytes(static_cast<std::uint64_t>(*used)) : "-";
}

std::string driver_text(const DeviceIdentity& identity) {
  return identity.driver_version.value_or("-");
}

// What a CUDA program started from here calls it.
std::string cuda_text(const DeviceIdentity& identity) {
  if (identity.device.kind != DeviceKind::Cuda) return "";
  if (identity.cuda_ordinal) return std::to_string(*identity.cuda_ordinal);
  return identity.is_mig_on.value_or(false) ? "slices" : "hidden";
}

std::string model_text(const DeviceStatus& status) {
  const auto& identity = status.identity;
  return identity.mig_profile ? "MIG " + *identity.mig_profile : identity.device.model;
}

std::string state_text(const DeviceStatus& status) {
  if (!status.is_up) return "down";
  switch (worst_state(status)) {
    case HealthState::Well:
      return "up";
    case HealthState::Warning:
      return "warning";
    case HealthState::Unfit:
      return "unfit";
  }
  return "";
}

std::string remarks(const TelemetrySnapshot& snapshot) {
  std::string out;
  bool is_one_hidden = false;
  for (const auto& status : snapshot.devices) {
    is_one_hidden = is_one_hidden || cuda_text(status.identity) == "hidden";
    if (!status.is_up) {
      out += fmt::format("{} is down: {}\n", status.name, printable(status.down_reason));
    }
    for (const auto& finding : status.health) {
      const bool is_said =
          finding.state == HealthState::Well || (finding.watch == "present" && !status.is_up);
      if (!is_said) out += fmt::format("{}: {}\n", status.name, printable(finding.sentence));
    }
  }
  if (is_one_hidden)
    out += "hidden: CUDA programs started here do not see it, by CUDA_VISIBLE_DEVICES or by MIG\n";
  if (snapshot.gpu_absent_reason) {
    out += "no GPU: " + printable(*snapshot.gpu_absent_reason) + "\n";
  }
  return out;
}

}  // namespace

std::string describe_host(const Inventory& inventory, std::size_t width) {
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
  return out;
}

std::string describe_devices(const TelemetrySnapshot& snapshot, std::size_t width) {
  Table table({{"device"},
               {"model", Align::Left, true},
               {"memory", Align::Right},
               {"in use", Align::Right},
               {"driver"},
               {"state"},
               {"CUDA"},
               {"UUID", Align::Left, true}});
  for (const auto& status : snapshot.devices) {
    const auto& identity = status.identity;
    table.add_row({status.name, model_text(status), size_text(status), used_text(status),
                   is_gpu(status) ? driver_text(identity) : "", state_text(status),
                   cuda_text(identity), identity.device.uuid.value_or(is_gpu(status) ? "-" : "")});
  }
  return table.render(width) + remarks(snapshot);
}

}  // namespace muster
