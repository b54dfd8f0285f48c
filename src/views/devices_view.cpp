// What a machine has, as facts and a row for each device; what is wrong stands in sentences below,
// where there is room for the reason.
// The same facts as `muster top` shows, printed once. A table loses columns in the order of
// `leaves` when the terminal is narrow. A UUID moves below its row instead, since a UUID that is
// cut is of no use.
#include "views/devices_view.h"

#include <fmt/format.h>

#include "base/text.h"
#include "terminal/style.h"
#include "terminal/table.h"
#include "terminal/text_wrap.h"
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

// What a CUDA program started from here calls it. One that is lost is hidden by nobody.
std::string cuda_text(const DeviceStatus& status) {
  const auto& identity = status.identity;
  if (identity.device.kind != DeviceKind::Cuda) return "";
  if (identity.cuda_ordinal) return std::to_string(*identity.cuda_ordinal);
  if (!status.lost_reason.empty()) return "-";
  return identity.is_mig_on.value_or(false) ? "slices" : "hidden";
}

std::string model_text(const DeviceStatus& status) {
  const auto& identity = status.identity;
  if (identity.mig_profile) return "MIG " + *identity.mig_profile;
  return identity.device.model.empty() && is_gpu(status) ? "-" : identity.device.model;
}

TableCell state_cell(const DeviceStatus& status) {
  if (!status.is_up) return {"down", kBad};
  switch (worst_state(status)) {
    case HealthState::Well:
      return {"up", kGood};
    case HealthState::Warning:
      return {"warning", kWarning};
    case HealthState::Unfit:
      return {"unfit", kBad};
  }
  return "";
}

std::string remarks(const TelemetrySnapshot& snapshot, const TerminalInfo& terminal) {
  const Wrap wrap{.width = terminal.width, .indent = 2};
  std::string out;
  bool is_one_hidden = false;
  for (const auto& status : snapshot.devices) {
    is_one_hidden = is_one_hidden || cuda_text(status) == "hidden";
    if (!status.is_up) {
      out += wrapped(fmt::format("{} is down: {}", status.name, status.down_reason), wrap);
    }
    for (const auto& finding : status.health) {
      const bool is_said =
          finding.state == HealthState::Well || (finding.watch == "present" && !status.is_up);
      if (!is_said) out += wrapped(fmt::format("{}: {}", status.name, finding.sentence), wrap);
    }
  }
  if (is_one_hidden) {
    out += wrapped(
        "hidden: CUDA programs started here do not see it, by CUDA_VISIBLE_DEVICES or by MIG",
        wrap);
  }
  if (snapshot.gpu_absent_reason) out += wrapped("no GPU: " + *snapshot.gpu_absent_reason, wrap);
  return out;
}

// "CPU        AMD EPYC …": what it is about, in a column of its own.
std::string fact(std::string_view name, const std::string& text, const TerminalInfo& terminal) {
  constexpr std::size_t kColumn = 12;
  const auto lines =
      wrapped(text, {.width = terminal.width, .head = padded(name, kColumn), .indent = kColumn});
  return styled_start(lines, name.size(), kHeading, terminal.has_color);
}

}  // namespace

std::string describe_host(const Inventory& inventory, const TerminalInfo& terminal) {
  auto out = fact("CPU", inventory.cpu_model.empty() ? "unknown" : inventory.cpu_model, terminal);
  out += fact("cores",
              fmt::format("{} in {} NUMA node{}; {} logical CPUs allowed", inventory.core_count,
                          inventory.numa_node_count, inventory.numa_node_count == 1 ? "" : "s",
                          inventory.allowed_cpus.size()),
              terminal);
  if (inventory.cpu_limit_cores) {
    out +=
        fact("CPU quota", fmt::format("{:g} cores (cgroup)", *inventory.cpu_limit_cores), terminal);
  }
  out += fact("memory",
              human_bytes(inventory.memory_total_bytes) +
                  (inventory.memory_limit_bytes
                       ? ", of which " + human_bytes(*inventory.memory_limit_bytes) +
                             " may be used (cgroup)"
                       : ""),
              terminal);
  if (inventory.instruction_sets.empty()) return out;
  return out + fact("fast paths", fmt::format("{}", fmt::join(inventory.instruction_sets, " ")),
                    terminal);
}

std::string describe_devices(const TelemetrySnapshot& snapshot, const TerminalInfo& terminal) {
  Table table({{"device"},
               {.title = "model", .may_shrink = true},
               {"memory", Align::Right},
               {"in use", Align::Right},
               {.title = "driver", .leaves = 2},
               {"state"},
               {.title = "CUDA", .leaves = 1},
               {.title = "UUID", .leaves = 3, .goes_below = true}});
  for (const auto& status : snapshot.devices) {
    const auto& identity = status.identity;
    table.add_row({status.name, model_text(status), size_text(status), used_text(status),
                   is_gpu(status) ? driver_text(identity) : "", state_cell(status),
                   cuda_text(status), identity.device.uuid.value_or(is_gpu(status) ? "-" : "")});
  }
  return table.render(terminal.width, terminal.has_color) + remarks(snapshot, terminal);
}

}  // namespace muster
