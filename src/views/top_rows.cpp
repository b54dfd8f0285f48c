// Which devices and processes are shown, in which order: decided without a screen, so that keys and
// drawing agree.
// A slice always follows its GPU, whatever the order is; so leaders are sorted, and the others
// are placed behind them. Sorting is stable, so equal rows keep their order from frame to frame.
#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <set>

#include "views/reading_text.h"
#include "views/top_state.h"

namespace muster {
namespace {

constexpr std::size_t kPrintedMost = 10;  // processes without a GPU, where nothing scrolls

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& letter : out) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return out;
}

bool contains(std::string_view text, const std::string& wanted) {
  return lower(text).find(wanted) != std::string::npos;
}

bool matches(const DeviceStatus& status, const std::string& wanted) {
  const auto& device = status.identity.device;
  return contains(status.name, wanted) || contains(device.model, wanted) ||
         contains(device.uuid.value_or(""), wanted) ||
         contains(device.pci_address.value_or(""), wanted);
}

// What is not known comes last.
double sort_value(const DeviceStatus& status, SortKey key) {
  const auto& readings = status.readings;
  std::optional<double> value;
  switch (key) {
    case SortKey::Device:
    case SortKey::Name:
      break;
    case SortKey::Busy:
      value = busy_share(status);
      break;
    case SortKey::Memory:
      value = memory_use(status).used;
      break;
    case SortKey::Power:
      value = readings.get(Reading::GpuPowerInstant);
      if (!value) value = readings.get(Reading::GpuPowerAverage);
      break;
    case SortKey::Temperature:
      value = chip_temperature(readings);
      break;
  }
  return value.value_or(-std::numeric_limits<double>::infinity());
}

// Values sort downwards, as the busiest or hottest device is what one looks for.
bool comes_before(const DeviceStatus& a, const DeviceStatus& b, SortKey key) {
  if (key == SortKey::Device) return false;  // they are in order
  if (key == SortKey::Name) {
    return short_model(a.identity.device.model) < short_model(b.identity.device.model);
  }
  return sort_value(a, key) > sort_value(b, key);
}

// The device whose row leads: a slice's GPU, itself for all others.
std::uint32_t leader(const TelemetrySnapshot& snapshot, std::uint32_t device) {
  const auto& parent = snapshot.devices[device].identity.parent;
  if (!parent) return device;
  for (std::uint32_t i = 0; i < snapshot.devices.size(); ++i) {
    const auto& other = snapshot.devices[i];
    if (!is_slice(other) && other.identity.device.uuid == parent) return i;
  }
  return device;
}

// The driver lists a process of a MIG slice once more for the whole GPU.
bool is_told_of_slice(const TelemetrySnapshot& snapshot, std::uint32_t gpu, std::uint32_t pid) {
  const auto& uuid = snapshot.devices[gpu].identity.device.uuid;
  if (!uuid || pid == 0) return false;
  return std::any_of(snapshot.devices.begin(), snapshot.devices.end(), [&](const auto& status) {
    return status.identity.parent == uuid &&
           std::any_of(status.processes.begin(), status.processes.end(),
                       [pid](const GpuProcess& process) { return process.pid == pid; });
  });
}

// Where a worker of ours computes.
std::optional<std::uint32_t> device_of(const TelemetrySnapshot& snapshot,
                                       const HostProcess& process) {
  for (std::uint32_t i = 0; i < snapshot.devices.size() && !process.device.empty(); ++i) {
    if (snapshot.devices[i].name == process.device) return i;
  }
  return std::nullopt;
}

// What is on no GPU and is no worker of ours runs on the CPUs, wherever the kernel puts it.
bool is_of_device(const ShownProcess& one, const TelemetrySnapshot& snapshot,
                  const TopState& state) {
  if (!state.device || *state.device >= snapshot.devices.size()) return true;
  if (one.device) return one.device == state.device;
  return one.host->device.empty() && !is_gpu(snapshot.devices[*state.device]);
}

// A process is also found by its device, so one filter serves both lists.
bool is_wanted(const ShownProcess& one, const TelemetrySnapshot& snapshot,
               const std::string& wanted) {
  if (one.device && matches(snapshot.devices[*one.device], wanted)) return true;
  const bool is_of_host =
      one.host && (contains(one.host->device, wanted) || contains(one.host->models, wanted));
  return is_of_host || contains(one.command(), wanted) ||
         contains(std::to_string(one.pid()), wanted);
}

}  // namespace

std::vector<std::uint32_t> shown_devices(const TelemetrySnapshot& snapshot, const TopState& state) {
  const auto wanted = lower(state.filter);
  std::vector<std::uint32_t> leaders;
  for (std::uint32_t i = 0; i < snapshot.devices.size(); ++i) {
    if (leader(snapshot, i) == i) leaders.push_back(i);
  }
  std::stable_sort(leaders.begin(), leaders.end(), [&](std::uint32_t a, std::uint32_t b) {
    return comes_before(snapshot.devices[a], snapshot.devices[b], state.sort);
  });
  if (state.is_reversed) std::reverse(leaders.begin(), leaders.end());

  std::vector<std::uint32_t> shown;
  for (const auto first : leaders) {
    for (std::uint32_t i = 0; i < snapshot.devices.size(); ++i) {
      if (leader(snapshot, i) == first && matches(snapshot.devices[i], wanted)) shown.push_back(i);
    }
  }
  return shown;
}

std::vector<ShownProcess> shown_processes(const TelemetrySnapshot& snapshot,
                                          const TopState& state) {
  const auto wanted = lower(state.filter);
  std::map<std::uint32_t, const HostProcess*> by_pid;
  for (const auto& process : snapshot.processes) by_pid.emplace(process.pid, &process);
  std::set<std::uint32_t> on_gpus;
  std::vector<ShownProcess> shown;
  for (std::uint32_t i = 0; i < snapshot.devices.size(); ++i) {
    const auto& status = snapshot.devices[i];
    for (const auto& process : status.processes) {
      on_gpus.insert(process.pid);
      if (is_told_of_slice(snapshot, i, process.pid)) continue;
      if (state.device && *state.device != i) continue;
      const auto host = by_pid.find(process.pid);
      const bool has_host = process.pid != 0 && host != by_pid.end();
      const ShownProcess one{i, &process, has_host ? host->second : nullptr};
      if (is_wanted(one, snapshot, wanted)) shown.push_back(one);
    }
  }
  std::size_t of_hosts = 0;
  for (const auto& process : snapshot.processes) {
    const ShownProcess one{device_of(snapshot, process), nullptr, &process};
    const bool is_left_out = on_gpus.contains(process.pid) || !is_of_device(one, snapshot, state) ||
                             !is_wanted(one, snapshot, wanted);
    if (is_left_out || (!state.has_keys && of_hosts == kPrintedMost)) continue;
    ++of_hosts;
    shown.push_back(one);
  }
  // Those of the host are in order already.
  std::stable_sort(shown.begin(), shown.end(), [](const ShownProcess& a, const ShownProcess& b) {
    const auto memory = [](const ShownProcess& one) {
      return one.gpu ? one.gpu->memory_bytes.value_or(0) + 1 : 0;
    };
    return memory(a) > memory(b);
  });
  return shown;
}

std::string_view sort_key_name(SortKey key) {
  switch (key) {
    case SortKey::Device:
      return "device";
    case SortKey::Name:
      return "name";
    case SortKey::Busy:
      return "busy";
    case SortKey::Memory:
      return "memory";
    case SortKey::Power:
      return "power";
    case SortKey::Temperature:
      return "temperature";
  }
  return "";
}

}  // namespace muster
