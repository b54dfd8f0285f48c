// The form that programs read: a key is there even where its value is not known, and null says so,
// so that a reader need not tell a missing key from a missing reading. Slices of a GPU are listed
// apart from whole GPUs, because adding up memory over both would count it twice.

#include "cli/devices_json.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "base/json_values.h"
#include "topology/links.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json host_value(const std::optional<Inventory>& host, T Inventory::*member) {
  return host ? Json((*host).*member) : Json(nullptr);
}

template <typename T>
Json host_value(const std::optional<Inventory>& host, std::optional<T> Inventory::*member) {
  return host ? or_null((*host).*member) : Json(nullptr);
}

std::optional<std::string> health_text(const DeviceStatus& status) {
  std::optional<std::string> sentences;
  for (const auto& finding : status.health) {
    if (finding.state == HealthState::Well) continue;
    sentences = sentences ? *sentences + "; " + finding.sentence : finding.sentence;
  }
  return sentences;
}

Json device_json(const DeviceStatus& status) {
  const auto& device = status.identity.device;
  Json json{{"name", status.name},
            {"kind", device_kind_name(device.kind)},
            {"model", device.model},
            {"uuid", or_null(device.uuid)},
            {"pci_address", or_null(device.pci_address)},
            {"memory_total_bytes", or_null(device.memory_total_bytes)},
            {"state", status.is_up ? "up" : "down"},
            {"down_reason", status.is_up ? Json(nullptr) : Json(status.down_reason)},
            {"remarks", or_null(health_text(status))},
            {"numa_node", or_null(status.identity.numa_node)}};
  if (device.kind == DeviceKind::Cpu) json["cpus"] = device.cpus;
  return json;
}

// The capability is kept as one number, major times ten and minor: 9.0 is 90.
std::optional<std::string> capability(const Device& device) {
  if (!device.compute_capability) return std::nullopt;
  constexpr std::uint32_t kMinor = 10;
  return std::to_string(*device.compute_capability / kMinor) + "." +
         std::to_string(*device.compute_capability % kMinor);
}

std::optional<std::uint64_t> whole(const std::optional<double>& value) {
  return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

Json gpu_json(const DeviceStatus& status) {
  const auto& identity = status.identity;
  auto json = device_json(status);
  json.update({{"memory_used_bytes", or_null(whole(status.readings.get(Reading::GpuMemoryUsed)))},
               {"compute_capability", or_null(capability(identity.device))},
               {"multiprocessor_count", or_null(identity.multiprocessor_count)},
               {"driver_version", or_null(identity.driver_version)},
               {"cuda_version", or_null(identity.cuda_version)},
               {"driver_index", or_null(identity.driver_index)},
               {"cuda_ordinal", or_null(identity.cuda_ordinal)},
               {"parent", or_null(identity.parent)},
               {"mig_profile", or_null(identity.mig_profile)},
               {"gpu_instance", or_null(identity.gpu_instance)},
               {"compute_instance", or_null(identity.compute_instance)},
               {"vbios", or_null(identity.vbios)},
               {"serial", or_null(identity.serial)},
               {"is_ecc_on", or_null(identity.is_ecc_on)},
               {"is_mig_on", or_null(identity.is_mig_on)},
               {"is_persistent", or_null(identity.is_persistent)},
               {"compute_mode", or_null(identity.compute_mode)},
               {"has_mps_server", identity.has_mps_server},
               {"has_unified_memory", identity.has_unified_memory}});
  return json;
}

// {"cuda:1": "NV18", …}; null where the driver does not tell.
Json links_json(const LinkMatrix& links, const std::vector<const DeviceStatus*>& gpus,
                std::size_t from) {
  if (from >= links.device_count || links.device_count > gpus.size()) return nullptr;
  auto json = Json::object();
  for (std::size_t to = 0; to < links.device_count; ++to) {
    const auto& label = links.labels[from * links.device_count + to];
    if (to != from) json[gpus[to]->name] = link_label_name(label);
  }
  return json;
}

}  // namespace

// The matrix of links counts whole GPUs alone, so those are gathered first and numbered in the
// order of the snapshot.
std::string devices_json(const std::optional<Inventory>& host, const TelemetrySnapshot& snapshot) {
  auto cpus = Json::array();
  auto slices = Json::array();
  std::vector<const DeviceStatus*> whole_gpus;
  for (const auto& status : snapshot.devices) {
    if (status.identity.device.kind == DeviceKind::Cpu) {
      cpus.push_back(device_json(status));
    } else if (status.identity.parent) {
      slices.push_back(gpu_json(status));
    } else {
      whole_gpus.push_back(&status);
    }
  }
  auto gpus = Json::array();
  for (std::size_t i = 0; i < whole_gpus.size(); ++i) {
    auto json = gpu_json(*whole_gpus[i]);
    json["links"] = links_json(snapshot.links, whole_gpus, i);
    gpus.push_back(std::move(json));
  }
  const Json json{{"machine", snapshot.machine},
                  {"cpu_model", host_value(host, &Inventory::cpu_model)},
                  {"core_count", host_value(host, &Inventory::core_count)},
                  {"numa_node_count", host_value(host, &Inventory::numa_node_count)},
                  {"allowed_cpus", host_value(host, &Inventory::allowed_cpus)},
                  {"cpu_limit_cores", host_value(host, &Inventory::cpu_limit_cores)},
                  {"instruction_sets", host_value(host, &Inventory::instruction_sets)},
                  {"memory_total_bytes", host_value(host, &Inventory::memory_total_bytes)},
                  {"memory_limit_bytes", host_value(host, &Inventory::memory_limit_bytes)},
                  {"cpus", std::move(cpus)},
                  {"gpus", std::move(gpus)},
                  {"slices", std::move(slices)},
                  {"gpu_absent_reason", or_null(snapshot.gpu_absent_reason)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster
