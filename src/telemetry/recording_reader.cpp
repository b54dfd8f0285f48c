// Reads what recording.cpp writes. A recording may come from another machine or version: unknown
// keys are passed over, but a known key of a wrong type is an error that names the field, and
// lists are bounded. An enum is read by comparing with the names that are written, so the two
// files cannot disagree.

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "telemetry/recording.h"
#include "telemetry/recording_names.h"
#include "topology/links.h"

namespace muster {
namespace {

using Json = nlohmann::json;

// A recording has no more devices than a node; a longer list is none of ours.
constexpr std::size_t kDevicesMax = 4096;
constexpr std::size_t kProcessesMax = 65536;

Error wrong(const std::string& where, std::string_view what) {
  return Error{ErrorKind::Corrupt, fmt::format("{} is no {}", where, what)};
}

Status take(const Json& json, const std::string& where, std::string& out) {
  if (!json.is_string()) return wrong(where, "text");
  out = json.get<std::string>();
  return Done{};
}

Status take(const Json& json, const std::string& where, bool& out) {
  if (!json.is_boolean()) return wrong(where, "true or false");
  out = json.get<bool>();
  return Done{};
}

Status take(const Json& json, const std::string& where, double& out) {
  if (!json.is_number()) return wrong(where, "number");
  out = json.get<double>();
  return std::isfinite(out) ? Status(Done{}) : wrong(where, "finite number");
}

template <typename Whole>
requires std::is_unsigned_v<Whole> Status take(const Json& json, const std::string& where,
                                               Whole& out) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > std::numeric_limits<Whole>::max()) {
    return wrong(where, "whole number of its range");
  }
  out = json.get<Whole>();
  return Done{};
}

template <typename Element>
Status take(const Json& json, const std::string& where, std::vector<Element>& out) {
  if (!json.is_array()) return wrong(where, "list");
  for (const auto& entry : json) {
    // A float of a list is read as what JSON has.
    std::conditional_t<std::is_same_v<Element, float>, double, Element> value{};
    MUSTER_TRY(take(entry, where, value));
    out.push_back(static_cast<Element>(value));
  }
  return Done{};
}

template <typename T>
Status take(const Json& json, const std::string& where, std::optional<T>& out) {
  T value{};
  MUSTER_TRY(take(json, where, value));
  out = std::move(value);
  return Done{};
}

// An object whose fields are taken by name.
class Fields {
 public:
  Fields(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  template <typename T>
  Status required(const char* key, T& out) const {
    if (!json_.contains(key)) {
      return Error{ErrorKind::Corrupt, fmt::format("{} is missing", name(key))};
    }
    return take(json_[key], name(key), out);
  }

  template <typename T>
  Status optional(const char* key, T& out) const {
    return json_.contains(key) ? take(json_[key], name(key), out) : Status(Done{});
  }

  /// The object or list of a key; an empty one where there is none.
  Result<Json> part(const char* key, Json::value_t type) const {
    if (!json_.contains(key)) return Json(type);
    if (json_[key].type() != type) {
      return wrong(name(key), type == Json::value_t::object ? "object" : "list");
    }
    return json_[key];
  }

  std::string name(std::string_view key) const {
    return where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key);
  }

 private:
  const Json& json_;
  const std::string where_;
};

template <typename Enum, typename Name>
Status take_enum(const Fields& fields, const char* key, Enum last, Name name_of, Enum& out) {
  std::string text;
  MUSTER_TRY(fields.required(key, text));
  for (std::size_t i = 0; i <= static_cast<std::size_t>(last); ++i) {
    out = static_cast<Enum>(i);
    if (text == name_of(out)) return Done{};
  }
  return Error{ErrorKind::Corrupt, fmt::format("{} is not known: {}", fields.name(key), text)};
}

Status take_identity(const Fields& fields, DeviceIdentity& identity) {
  auto& device = identity.device;
  MUSTER_TRY(take_enum(fields, "kind", kDeviceKindLast, device_kind_name, device.kind));
  MUSTER_TRY(fields.required("index", device.index));
  MUSTER_TRY(fields.required("model", device.model));
  MUSTER_TRY(fields.optional("uuid", device.uuid));
  MUSTER_TRY(fields.optional("pci_address", device.pci_address));
  MUSTER_TRY(fields.optional("memory_total_bytes", device.memory_total_bytes));
  MUSTER_TRY(fields.optional("compute_capability", device.compute_capability));
  MUSTER_TRY(fields.optional("cpus", device.cpus));
  MUSTER_TRY(fields.optional("driver_version", identity.driver_version));
  MUSTER_TRY(fields.optional("cuda_version", identity.cuda_version));
  MUSTER_TRY(fields.optional("vbios", identity.vbios));
  MUSTER_TRY(fields.optional("serial", identity.serial));
  MUSTER_TRY(fields.optional("numa_node", identity.numa_node));
  MUSTER_TRY(fields.optional("multiprocessor_count", identity.multiprocessor_count));
  MUSTER_TRY(fields.optional("ecc", identity.is_ecc_on));
  MUSTER_TRY(fields.optional("mig", identity.is_mig_on));
  MUSTER_TRY(fields.optional("persistence", identity.is_persistent));
  MUSTER_TRY(fields.optional("compute_mode", identity.compute_mode));
  MUSTER_TRY(fields.optional("driver_index", identity.driver_index));
  MUSTER_TRY(fields.optional("cuda_ordinal", identity.cuda_ordinal));
  MUSTER_TRY(fields.optional("parent", identity.parent));
  MUSTER_TRY(fields.optional("mig_profile", identity.mig_profile));
  MUSTER_TRY(fields.optional("gpu_instance", identity.gpu_instance));
  MUSTER_TRY(fields.optional("compute_instance", identity.compute_instance));
  MUSTER_TRY(fields.optional("mps_server", identity.has_mps_server));
  return fields.optional("unified_memory", identity.has_unified_memory);
}

Status take_readings(const Fields& fields, Readings& readings) {
  const auto part = MUSTER_TRY(fields.part("readings", Json::value_t::object));
  for (const auto& [key, json] : part.items()) {
    const auto reading = find_reading(key);
    if (!reading) {
      return Error{ErrorKind::Corrupt,
                   fmt::format("{} has no reading of the name {}", fields.name("readings"), key)};
    }
    double value = 0;
    MUSTER_TRY(take(json, fields.name(key), value));
    readings.set(*reading, value);
  }
  return Done{};
}

template <typename Code>
Result<Code> take_code(const Fields& fields, const std::string& key) {
  Code code{};
  const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), code);
  if (failure != std::errc{} || end != key.data() + key.size()) {
    return wrong(fields.name(key), "code");
  }
  return code;
}

Status take_counts(const Fields& fields, DeviceStatus& status) {
  const auto xids = MUSTER_TRY(fields.part("xids", Json::value_t::object));
  for (const auto& [key, json] : xids.items()) {
    if (!json.is_object()) return wrong(fields.name("xids." + key), "object");
    auto& xid = status.xids[MUSTER_TRY(take_code<std::uint32_t>(fields, key))];
    const Fields entry(json, fields.name("xids." + key));
    MUSTER_TRY(entry.required("count", xid.count));
    MUSTER_TRY(entry.required("last", xid.last_unix_seconds));
  }
  const auto errors = MUSTER_TRY(fields.part("errors", Json::value_t::object));
  for (const auto& [key, json] : errors.items()) {
    auto& count = status.error_counts[MUSTER_TRY(take_code<std::int32_t>(fields, key))];
    MUSTER_TRY(take(json, fields.name("errors." + key), count));
  }
  return Done{};
}

Status take_lists(const Fields& fields, DeviceStatus& status) {
  const auto processes = MUSTER_TRY(fields.part("processes", Json::value_t::array));
  for (const auto& json : processes) {
    if (!json.is_object()) return wrong(fields.name("processes"), "list of objects");
    const Fields entry(json, fields.name("processes"));
    auto& process = status.processes.emplace_back();
    MUSTER_TRY(entry.required("pid", process.pid));
    MUSTER_TRY(entry.required("command", process.command));
    MUSTER_TRY(entry.optional("memory_bytes", process.memory_bytes));
    MUSTER_TRY(take_enum(entry, "kind", GpuProcessKind::Mps, process_kind_name, process.kind));
  }
  const auto health = MUSTER_TRY(fields.part("health", Json::value_t::array));
  for (const auto& json : health) {
    if (!json.is_object()) return wrong(fields.name("health"), "list of objects");
    const Fields entry(json, fields.name("health"));
    auto& finding = status.health.emplace_back();
    MUSTER_TRY(entry.required("watch", finding.watch));
    MUSTER_TRY(take_enum(entry, "state", HealthState::Unfit, health_state_name, finding.state));
    MUSTER_TRY(entry.optional("sentence", finding.sentence));
  }
  return Done{};
}

Result<DeviceStatus> take_device(const Json& json, const std::string& where) {
  if (!json.is_object()) return wrong(where, "object");
  const Fields fields(json, where);
  DeviceStatus status;
  MUSTER_TRY(fields.required("name", status.name));
  MUSTER_TRY(take_identity(fields, status.identity));
  MUSTER_TRY(fields.required("up", status.is_up));
  MUSTER_TRY(fields.optional("down_reason", status.down_reason));
  MUSTER_TRY(fields.optional("last_success", status.last_success_unix_seconds));
  MUSTER_TRY(take_readings(fields, status.readings));
  MUSTER_TRY(fields.optional("core_loads", status.core_loads));
  MUSTER_TRY(take_counts(fields, status));
  MUSTER_TRY(take_lists(fields, status));
  return status;
}

Status take_host_processes(const Fields& fields, std::vector<HostProcess>& processes) {
  const auto list = MUSTER_TRY(fields.part("processes", Json::value_t::array));
  if (list.size() > kProcessesMax) return wrong("processes", "list of at most 65536");
  for (const auto& json : list) {
    if (!json.is_object()) return wrong("processes", "list of objects");
    const Fields entry(json, "processes");
    auto& process = processes.emplace_back();
    MUSTER_TRY(entry.required("pid", process.pid));
    MUSTER_TRY(entry.required("command", process.command));
    MUSTER_TRY(entry.optional("cores", process.cores));
    MUSTER_TRY(entry.required("memory_bytes", process.memory_bytes));
    MUSTER_TRY(entry.optional("device", process.device));
    MUSTER_TRY(entry.optional("models", process.models));
  }
  return Done{};
}

Status take_links(const Fields& fields, std::size_t device_count, LinkMatrix& links) {
  const auto labels = MUSTER_TRY(fields.part("links", Json::value_t::array));
  for (const auto& json : labels) {
    std::string text;
    MUSTER_TRY(take(json, "links", text));
    const auto label = parse_link_label(text);
    if (!label)
      return Error{ErrorKind::Corrupt, fmt::format("links has an unknown kind: {}", text)};
    links.labels.push_back(*label);
  }
  while (std::uint64_t{links.device_count} * links.device_count < links.labels.size()) {
    ++links.device_count;
  }
  const auto count = std::uint64_t{links.device_count};
  if (count * count != links.labels.size() || count > device_count) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("links is no square of the devices: {}", links.labels.size())};
  }
  return Done{};
}

Status take_collector(const Fields& fields, CollectorStatus& status) {
  const auto part = MUSTER_TRY(fields.part("collector", Json::value_t::object));
  const Fields entry(part, "collector");
  MUSTER_TRY(entry.optional("restarts", status.restarts));
  MUSTER_TRY(entry.optional("cpu_seconds", status.cpu_seconds));
  MUSTER_TRY(entry.optional("rss_bytes", status.rss_bytes));
  MUSTER_TRY(entry.optional("sampler_pid", status.sampler_pid));
  std::vector<std::uint64_t> missed;
  MUSTER_TRY(entry.optional("missed_visits", missed));
  for (std::size_t i = 0; i < std::min(missed.size(), kTierCount); ++i) {
    status.ticks[i].missed = missed[i];
  }
  return Done{};
}

}  // namespace

Result<TelemetrySnapshot> read_recording_line(std::string_view line) {
  const auto json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return Error{ErrorKind::Corrupt, "the line is no JSON object"};
  const Fields fields(json, "");
  TelemetrySnapshot snapshot;
  MUSTER_TRY(fields.required("time", snapshot.unix_seconds));
  // A time that the clock's nanoseconds can hold: the years up to 2262.
  constexpr double kSecondsMax = 9.2e9;
  if (snapshot.unix_seconds < 0 || snapshot.unix_seconds > kSecondsMax)
    return wrong("time", "time");
  // Whole seconds and the rest by themselves: together they have more digits than a double.
  double whole = 0;
  const double rest = std::modf(snapshot.unix_seconds, &whole);
  snapshot.at = TimePoint(std::chrono::seconds(static_cast<std::int64_t>(whole)) +
                          Duration(std::llround(rest * 1e9)));
  MUSTER_TRY(fields.required("machine", snapshot.machine));
  MUSTER_TRY(fields.required("expected_gpus", snapshot.expected_gpus));
  MUSTER_TRY(fields.optional("gpu_absent_reason", snapshot.gpu_absent_reason));
  const auto devices = MUSTER_TRY(fields.part("devices", Json::value_t::array));
  if (devices.size() > kDevicesMax) return wrong("devices", "list of at most 4096");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    snapshot.devices.push_back(MUSTER_TRY(take_device(devices[i], fmt::format("devices[{}]", i))));
  }
  MUSTER_TRY(take_host_processes(fields, snapshot.processes));
  MUSTER_TRY(take_links(fields, snapshot.devices.size(), snapshot.links));
  MUSTER_TRY(take_collector(fields, snapshot.collector));
  return snapshot;
}

}  // namespace muster
