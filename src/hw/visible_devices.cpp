// Works out which ordinal CUDA would give each device, without starting CUDA: the runtime takes
// time and memory of the GPU, and reads the variables only once in a process. The rules are those
// of the environment variables, their traps included: an entry that names nothing hides all that
// follow, and one slice of MIG hides everything else. Sources are in the header.

#include "hw/visible_devices.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>

#include "base/text.h"

namespace muster {
namespace {

using Position = std::size_t;  // into the list of devices
using Positions = std::vector<Position>;

bool is_slice(const DeviceIdentity& device) { return device.parent.has_value(); }

Positions whole_gpus(const std::vector<DeviceIdentity>& devices,
                     const std::optional<std::string>& order) {
  Positions gpus;
  for (Position i = 0; i < devices.size(); ++i) {
    if (!is_slice(devices[i])) gpus.push_back(i);
  }
  if (order == "PCI_BUS_ID" || gpus.empty()) return gpus;
  const auto speed = [&](Position i) {
    return std::tuple(devices[i].device.compute_capability.value_or(0),
                      devices[i].multiprocessor_count.value_or(0));
  };
  const auto fastest = std::max_element(
      gpus.begin(), gpus.end(), [&](Position a, Position b) { return speed(a) < speed(b); });
  std::rotate(gpus.begin(), fastest, fastest + 1);
  return gpus;
}

// The GPU itself, or the first slice of one in MIG mode; nullopt: in MIG mode without slices.
std::optional<Position> usable(const std::vector<DeviceIdentity>& devices, Position gpu) {
  if (!devices[gpu].is_mig_on.value_or(false)) return gpu;
  const auto next = gpu + 1;
  const bool has_slice = next < devices.size() && is_slice(devices[next]);
  return has_slice ? std::optional(next) : std::nullopt;
}

// The number that the text starts with.
std::optional<std::size_t> leading_index(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// The one device of those wanted whose UUID begins so.
template <typename Wanted>
std::optional<Position> by_uuid(const std::vector<DeviceIdentity>& devices, std::string_view prefix,
                                Wanted wanted) {
  std::optional<Position> found;
  for (Position i = 0; i < devices.size(); ++i) {
    const auto& uuid = devices[i].device.uuid;
    if (!uuid || !wanted(devices[i]) || !uuid->starts_with(prefix)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

// "MIG-GPU-<uuid>/<gpu instance>/<compute instance>".
std::optional<Position> by_instances(const std::vector<DeviceIdentity>& devices,
                                     std::string_view entry) {
  constexpr std::string_view kPrefix = "MIG-";
  const auto parts = split(entry.substr(kPrefix.size()), '/');
  if (parts.size() != 3) return std::nullopt;
  for (Position i = 0; i < devices.size(); ++i) {
    const auto& device = devices[i];
    if (device.parent == parts[0] && device.gpu_instance == leading_index(parts[1]) &&
        device.compute_instance == leading_index(parts[2])) {
      return i;
    }
  }
  return std::nullopt;
}

enum class Form { Index, Gpu, Mig };

Form form_of(std::string_view entry) {
  if (entry.starts_with("GPU-")) return Form::Gpu;
  return entry.starts_with("MIG-") ? Form::Mig : Form::Index;
}

std::optional<Position> find(const std::vector<DeviceIdentity>& devices, const Positions& gpus,
                             std::string_view entry) {
  switch (form_of(entry)) {
    case Form::Index: {
      const auto index = leading_index(entry);
      return index && *index < gpus.size() ? usable(devices, gpus[*index]) : std::nullopt;
    }
    case Form::Gpu: {
      const auto gpu =
          by_uuid(devices, entry, [](const DeviceIdentity& device) { return !is_slice(device); });
      return gpu ? usable(devices, *gpu) : std::nullopt;
    }
    case Form::Mig:
      return entry.starts_with("MIG-GPU-") ? by_instances(devices, entry)
                                           : by_uuid(devices, entry, is_slice);
  }
  return std::nullopt;
}

// What CUDA_VISIBLE_DEVICES names, in its order.
Positions named(const std::vector<DeviceIdentity>& devices, const Positions& gpus,
                const std::string& visible) {
  Positions positions;
  std::optional<Form> form;
  for (const auto& piece : split(visible, ',')) {
    const auto entry = trim(piece);
    if (form.value_or(form_of(entry)) != form_of(entry)) break;
    form = form_of(entry);
    const auto position = find(devices, gpus, entry);
    if (!position) break;
    if (std::find(positions.begin(), positions.end(), *position) != positions.end()) return {};
    positions.push_back(*position);
  }
  return positions;
}

}  // namespace

std::vector<std::optional<std::uint32_t>> cuda_ordinals(const std::vector<DeviceIdentity>& devices,
                                                        const std::optional<std::string>& visible,
                                                        const std::optional<std::string>& order) {
  const auto gpus = whole_gpus(devices, order);
  Positions positions;
  if (visible) {
    positions = named(devices, gpus, *visible);
  } else {
    for (const auto gpu : gpus) {
      if (const auto position = usable(devices, gpu)) positions.push_back(*position);
    }
  }
  const auto slice = std::find_if(positions.begin(), positions.end(),
                                  [&](Position i) { return is_slice(devices[i]); });
  if (slice != positions.end()) positions = {*slice};
  std::vector<std::optional<std::uint32_t>> ordinals(devices.size());
  for (std::uint32_t i = 0; i < positions.size(); ++i) ordinals[positions[i]] = i;
  return ordinals;
}

}  // namespace muster
