// Writes a snapshot as a line of JSON. What is not known is left out rather than written as
// null, so a line grows only with what a machine tells. Keys keep their order, which makes
// recordings of two runs comparable by a plain diff.

#include "telemetry/recording.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "telemetry/recording_names.h"
#include "topology/links.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

void put_identity(Json& json, const DeviceIdentity& identity) {
  const auto& device = identity.device;
  json["kind"] = device_kind_name(device.kind);
  json["index"] = device.index;
  json["model"] = device.model;
  put(json, "uuid", device.uuid);
  put(json, "pci_address", device.pci_address);
  put(json, "memory_total_bytes", device.memory_total_bytes);
  put(json, "compute_capability", device.compute_capability);
  if (!device.cpus.empty()) json["cpus"] = device.cpus;
  put(json, "driver_version", identity.driver_version);
  put(json, "cuda_version", identity.cuda_version);
  put(json, "vbios", identity.vbios);
  put(json, "serial", identity.serial);
  put(json, "numa_node", identity.numa_node);
  put(json, "multiprocessor_count", identity.multiprocessor_count);
  put(json, "ecc", identity.is_ecc_on);
  put(json, "mig", identity.is_mig_on);
  put(json, "persistence", identity.is_persistent);
  put(json, "compute_mode", identity.compute_mode);
  put(json, "driver_index", identity.driver_index);
  put(json, "cuda_ordinal", identity.cuda_ordinal);
  put(json, "parent", identity.parent);
  put(json, "mig_profile", identity.mig_profile);
  put(json, "gpu_instance", identity.gpu_instance);
  put(json, "compute_instance", identity.compute_instance);
  if (identity.has_mps_server) json["mps_server"] = true;
  if (identity.has_unified_memory) json["unified_memory"] = true;
}

Json processes_json(const std::vector<GpuProcess>& processes) {
  auto list = Json::array();
  for (const auto& process : processes) {
    Json json{{"pid", process.pid}, {"command", process.command}};
    put(json, "memory_bytes", process.memory_bytes);
    json["kind"] = process_kind_name(process.kind);
    list.push_back(std::move(json));
  }
  return list;
}

Json device_json(const DeviceStatus& status, const std::vector<Reading>& only) {
  Json json{{"name", status.name}};
  put_identity(json, status.identity);
  json["up"] = status.is_up;
  if (!status.is_up) json["down_reason"] = status.down_reason;
  put(json, "last_success", status.last_success_unix_seconds);
  auto readings = Json::object();
  for (const auto& info : reading_table()) {
    if (!only.empty() && std::ranges::count(only, info.reading) == 0) continue;
    const auto value = status.readings.get(info.reading);
    if (value) readings[std::string(info.name)] = *value;
  }
  json["readings"] = std::move(readings);
  if (!status.core_loads.empty()) json["core_loads"] = status.core_loads;
  if (!status.processes.empty()) json["processes"] = processes_json(status.processes);
  for (const auto& [code, xid] : status.xids) {
    json["xids"][std::to_string(code)] = {{"count", xid.count}, {"last", xid.last_unix_seconds}};
  }
  for (const auto& [code, count] : status.error_counts) {
    json["errors"][std::to_string(code)] = count;
  }
  auto health = Json::array();
  for (const auto& finding : status.health) {
    Json entry{{"watch", finding.watch}, {"state", health_state_name(finding.state)}};
    if (!finding.sentence.empty()) entry["sentence"] = finding.sentence;
    health.push_back(std::move(entry));
  }
  json["health"] = std::move(health);
  return json;
}

Json host_processes_json(const std::vector<HostProcess>& processes) {
  auto list = Json::array();
  for (const auto& process : processes) {
    Json json{{"pid", process.pid}, {"command", process.command}};
    put(json, "cores", process.cores);
    json["memory_bytes"] = process.memory_bytes;
    if (!process.device.empty()) json["device"] = process.device;
    if (!process.models.empty()) json["models"] = process.models;
    list.push_back(std::move(json));
  }
  return list;
}

Json links_json(const LinkMatrix& links) {
  auto labels = Json::array();
  for (const auto& label : links.labels) labels.push_back(link_label_name(label));
  return labels;
}

Json collector_json(const CollectorStatus& status) {
  Json json{{"restarts", status.restarts},
            {"cpu_seconds", status.cpu_seconds},
            {"rss_bytes", status.rss_bytes}};
  put(json, "sampler_pid", status.sampler_pid);
  auto missed = Json::array();
  for (const auto& tier : status.ticks) missed.push_back(tier.missed);
  json["missed_visits"] = std::move(missed);
  return json;
}

}  // namespace

std::vector<std::string> recording_keys() { return {"time", "machine", "expected_gpus"}; }

std::string recording_line(const TelemetrySnapshot& snapshot, const std::vector<Reading>& only) {
  Json json{{"time", snapshot.unix_seconds}, {"machine", snapshot.machine}};
  json["expected_gpus"] = snapshot.expected_gpus;
  put(json, "gpu_absent_reason", snapshot.gpu_absent_reason);
  auto devices = Json::array();
  for (const auto& status : snapshot.devices) devices.push_back(device_json(status, only));
  json["devices"] = std::move(devices);
  if (!snapshot.processes.empty()) json["processes"] = host_processes_json(snapshot.processes);
  json["links"] = links_json(snapshot.links);
  json["collector"] = collector_json(snapshot.collector);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster
