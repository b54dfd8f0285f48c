// Inside a container GPUs are numbered in PCI order from 0, whatever order they were asked for in.
// Where the order matters, the variable that reorders them is set inside.

#include "deploy/device_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "deploy/server_api.h"

namespace muster {
namespace {

bool are_places_known(std::span<const ContainerDevice> devices) {
  return std::all_of(devices.begin(), devices.end(),
                     [](const ContainerDevice& device) { return device.host_place.has_value(); });
}

bool are_models_equal(std::span<const ContainerDevice> devices) {
  return std::all_of(devices.begin(), devices.end(), [&](const ContainerDevice& device) {
    return !device.model.empty() && device.model == devices.front().model;
  });
}

}  // namespace

InnerOrder inner_order(std::span<const ContainerDevice> devices) {
  InnerOrder order;
  if (devices.empty()) return order;
  const bool is_known = are_places_known(devices);
  if (is_known) {
    for (const auto& device : devices) {
      const auto before = std::count_if(devices.begin(), devices.end(), [&](const auto& other) {
        return *other.host_place < *device.host_place;
      });
      order.container_index.push_back(static_cast<std::uint32_t>(before));
    }
  }
  if (devices.size() == 1) return order;

  const bool is_imposed =
      is_known && !std::is_sorted(order.container_index.begin(), order.container_index.end());
  const auto visible = fmt::format("{}", fmt::join(order.container_index, ","));
  if (is_amd(devices.front())) {
    if (is_imposed) order.environment.push_back({"HIP_VISIBLE_DEVICES", visible});
    return order;
  }
  if (is_imposed || !are_models_equal(devices)) {
    order.environment.push_back({"CUDA_DEVICE_ORDER", "PCI_BUS_ID"});
  }
  if (is_imposed) order.environment.push_back({"CUDA_VISIBLE_DEVICES", visible});
  return order;
}

}  // namespace muster
