// A GPU that is lost has left the bus, and CUDA does not count it any more. Whoever did not name it
// goes on with the others and is told so in the driver's words; whoever hid it is not. A number in
// CUDA_VISIBLE_DEVICES is read as it was meant, with each GPU in its place: CUDA's own would be
// that of the next GPU, which somebody else may use. A worker is given its GPU by UUID and needs
// none.

#include "cli/lost_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/environment.h"
#include "base/text.h"
#include "hw/device_names.h"
#include "hw/visible_devices.h"

namespace muster {
namespace {

std::vector<DeviceStatus> cuda_devices(const std::vector<DeviceStatus>& watched) {
  std::vector<DeviceStatus> gpus;
  std::copy_if(
      watched.begin(), watched.end(), std::back_inserter(gpus),
      [](const DeviceStatus& status) { return status.identity.device.kind == DeviceKind::Cuda; });
  return gpus;
}

bool is_uuid(std::string_view entry) {
  return entry.starts_with("GPU-") || entry.starts_with("MIG-");
}

// By the beginning of its UUID, or as older drivers name a slice: "MIG-GPU-<uuid>/1/0".
bool is_known(std::string_view entry, const std::vector<DeviceIdentity>& gpus) {
  const bool has_uuid = std::any_of(gpus.begin(), gpus.end(), [&](const DeviceIdentity& gpu) {
    return gpu.device.uuid && gpu.device.uuid->starts_with(entry);
  });
  if (has_uuid || entry.find('/') == std::string_view::npos) return has_uuid;
  const auto numbers = cuda_ordinals(gpus, std::string(entry), std::nullopt);
  return std::any_of(numbers.begin(), numbers.end(),
                     [](const std::optional<std::uint32_t>& number) { return number.has_value(); });
}

// A UUID that is no known device's.
bool names_unknown_uuid(const std::string& visible, const std::vector<DeviceIdentity>& gpus) {
  const auto entries = split(visible, ',');
  return std::any_of(entries.begin(), entries.end(), [&](const std::string& text) {
    const auto entry = trim(text);
    return is_uuid(entry) && !is_known(entry, gpus);
  });
}

// CUDA's default order goes by speed, of which a GPU tells nothing that is lost when it is opened.
// Taken for as fast as any other it keeps its place.
std::vector<DeviceIdentity> with_speeds(const std::vector<const DeviceStatus*>& gpus) {
  std::pair<std::uint32_t, std::uint32_t> fastest{0, 0};
  for (const auto* status : gpus) {
    const auto& identity = status->identity;
    fastest = std::max(fastest, std::pair(identity.device.compute_capability.value_or(0),
                                          identity.multiprocessor_count.value_or(0)));
  }
  std::vector<DeviceIdentity> identities;
  for (const auto* status : gpus) {
    auto identity = status->identity;
    if (!status->lost_reason.empty() && !identity.device.compute_capability) {
      identity.device.compute_capability = fastest.first;
      identity.multiprocessor_count = fastest.second;
    }
    identities.push_back(std::move(identity));
  }
  return identities;
}

// What CUDA_VISIBLE_DEVICES means. CUDA never counts a GPU that this user may not open.
class VisibleGpus {
 public:
  VisibleGpus(const std::vector<DeviceStatus>& gpus, const CudaVariables& variables)
      : gpus_(gpus), is_restricted_(variables.visible.has_value()), numbers_(gpus.size()) {
    std::vector<const DeviceStatus*> counted;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if (gpus[i].identity.is_barred) continue;
      counted.push_back(&gpus[i]);
      places.push_back(i);
    }
    const auto identities = with_speeds(counted);
    const auto numbers = cuda_ordinals(identities, variables.visible, variables.order);
    for (std::size_t i = 0; i < places.size(); ++i) numbers_[places[i]] = numbers[i];
    names_unknown_ = is_restricted_ && names_unknown_uuid(*variables.visible, identities);
  }

  bool names(std::size_t gpu) const { return numbers_[gpu].has_value(); }

  bool hides_on_purpose(std::size_t gpu) const {
    const auto& identity = gpus_[gpu].identity;
    if (!is_restricted_ || numbers_[gpu] || identity.cuda_ordinal) return false;
    return !(names_unknown_ && !identity.device.uuid) && !has_lost_its_place();
  }

 private:
  // One that works is named, CUDA counts it no more, and it has no UUID to be used by.
  bool has_lost_its_place() const {
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const auto& identity = gpus_[i].identity;
      const bool has_another_name = identity.cuda_ordinal || identity.device.uuid;
      if (numbers_[i] && !has_another_name && gpus_[i].lost_reason.empty()) return true;
    }
    return false;
  }

  const std::vector<DeviceStatus>& gpus_;
  bool is_restricted_ = false;
  bool names_unknown_ = false;
  std::vector<std::optional<std::uint32_t>> numbers_;  // if each of them were there
};

bool is_any_lost(const std::vector<DeviceStatus>& gpus) {
  return std::any_of(gpus.begin(), gpus.end(), [](const DeviceStatus& status) {
    return !status.lost_reason.empty() && !status.identity.is_barred;
  });
}

// Of one that works beside a lost one. Without a UUID a worker could not be given it otherwise than
// as CUDA counts now.
void use_as_named(Device& gpu, const DeviceStatus& status, const std::string& visible,
                  bool is_named) {
  if (!gpu.uuid) return;
  if (is_named) {
    gpu.hidden_by.clear();
  } else if (status.identity.cuda_ordinal) {
    gpu.hidden_by = "CUDA_VISIBLE_DEVICES=" + visible;
  }
}

// The lost GPUs in whose stead some of `chosen` are, where those are as many as are wanted: GPUs
// are taken in their order. CPUs are in the stead of all where no GPU is left, else of none.
Inventory missed_by(const std::vector<Device>& chosen, const Inventory& inventory) {
  if (std::none_of(inventory.gpus.begin(), inventory.gpus.end(),
                   [](const Device& gpu) { return gpu.is_usable(); })) {
    return inventory;
  }
  const auto place = [](const Device& gpu) {
    return std::pair(gpu.index, gpu.slice ? *gpu.slice + 1 : 0U);
  };
  Inventory missed;
  for (const auto& gpu : inventory.gpus) {
    const bool has_later = std::any_of(chosen.begin(), chosen.end(), [&](const Device& other) {
      return other.kind == DeviceKind::Cuda && place(other) > place(gpu);
    });
    if (has_later) missed.gpus.push_back(gpu);
  }
  return missed;
}

}  // namespace

CudaVariables CudaVariables::of_environment() {
  return {.visible = environment_variable("CUDA_VISIBLE_DEVICES"),
          .order = environment_variable("CUDA_DEVICE_ORDER")};
}

void mark_lost(std::vector<Device>& gpus, const std::vector<DeviceStatus>& watched,
               const CudaVariables& variables) {
  const auto statuses = cuda_devices(watched);
  const VisibleGpus visible(statuses, variables);
  const bool is_renumbered = variables.visible && is_any_lost(statuses);
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const auto& status = statuses[i];
    const auto found = std::find_if(gpus.begin(), gpus.end(),
                                    [&](const Device& gpu) { return gpu.name() == status.name; });
    if (found == gpus.end()) continue;  // its slices stand for it
    if (status.lost_reason.empty()) {
      if (is_renumbered) use_as_named(*found, status, *variables.visible, visible.names(i));
    } else if (status.identity.is_barred) {
      found->hidden_by = "its driver: " + status.lost_reason;
    } else if (!visible.hides_on_purpose(i)) {
      found->lost_reason = status.lost_reason;
    }
  }
}

std::optional<std::string> lost_gpus_notice(std::string_view names, const Inventory& inventory,
                                            const std::vector<Device>& chosen,
                                            std::optional<std::size_t> most) {
  if (!takes_gpus_there_are(names)) return std::nullopt;
  const bool is_complete = !takes_all_gpus(names) || (most && chosen.size() >= *most);
  const auto lost = lost_gpus_text(is_complete ? missed_by(chosen, inventory) : inventory);
  if (lost.empty()) return std::nullopt;
  std::vector<std::string> others;
  for (const auto& device : chosen) others.push_back(device.name());
  return fmt::format("{}; the work goes to {}", lost, fmt::join(others, ", "));
}

}  // namespace muster
