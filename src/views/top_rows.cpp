#include <algorithm>
#include <cctype>
#include <limits>

#include "views/reading_text.h"
#include "views/top_state.h"

namespace muster {
namespace {

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
  std::vector<ShownProcess> shown;
  for (std::uint32_t i = 0; i < snapshot.devices.size(); ++i) {
    const auto& status = snapshot.devices[i];
    if (state.device && *state.device != i) continue;
    for (const auto& process : status.processes) {
      const bool is_wanted = matches(status, wanted) || contains(process.command, wanted) ||
                             contains(std::to_string(process.pid), wanted);
      if (is_wanted) shown.push_back({i, &process});
    }
  }
  std::stable_sort(shown.begin(), shown.end(), [](const ShownProcess& a, const ShownProcess& b) {
    return a.process->memory_bytes.value_or(0) > b.process->memory_bytes.value_or(0);
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
