// What the devices of a point did in its trials. A short trial may end before a reading is taken:
// there is null then, and the reason names it. A value that was read before or behind the requests
// would be one of something else.
#include "sweep/device_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>

#include "base/json_values.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMb = 1 << 20;  // as nvidia-smi counts
constexpr double kPerCent = 100;

// One reading over the trials: least, mean, most, 95th percentile.
struct ReadingRange {
  std::optional<double> mean, least, most, p95;
};

template <typename Get>
ReadingRange range_of(const std::vector<const PointDevice*>& trials, double factor, Get get) {
  ReadingRange range;
  double sum = 0;
  double p95 = 0;
  std::size_t count = 0;
  for (const auto* device : trials) {
    const std::optional<ReadingStatistics> one = get(device->use);
    if (!one) continue;
    ++count;
    sum += one->mean;
    p95 += one->p95;
    range.least = std::min(range.least.value_or(one->min * factor), one->min * factor);
    range.most = std::max(range.most.value_or(one->max * factor), one->max * factor);
  }
  if (count == 0) return range;
  range.mean = factor * sum / static_cast<double>(count);
  range.p95 = factor * p95 / static_cast<double>(count);
  return range;
}

void add_range(Json& json, const std::string& name, const ReadingRange& range) {
  json[name] = or_null(range.mean);
  json[name + "_min"] = or_null(range.least);
  json[name + "_max"] = or_null(range.most);
  json[name + "_p95"] = or_null(range.p95);
}

// Which readings never came; null: all of them did. What a driver does not offer is one of these.
Json missing_json(const Json& readings, std::initializer_list<const char*> names, double seconds) {
  std::vector<std::string_view> missing;
  for (const auto* name : names) {
    if (readings.at(name).is_null()) missing.emplace_back(name);
  }
  if (missing.empty()) return nullptr;
  return fmt::format("no reading came in the {:.3f} s of its requests: {}", seconds,
                     fmt::join(missing, ", "));
}

Json gpu_json(const std::vector<const PointDevice*>& trials, double seconds) {
  const auto& identity = trials.front()->identity;
  const auto total = identity.device.memory_total_bytes;
  const auto memory =
      range_of(trials, 1 / kMb, [](const DeviceUse& use) { return use.memory_bytes(); });
  Json json{{"name", identity.device.model}, {"uuid", or_null(identity.device.uuid)}};
  add_range(json, "utilization_percent",
            range_of(trials, kPerCent, [](const DeviceUse& use) { return use.utilization(); }));
  add_range(json, "memory_used_mb", memory);
  json["memory_total_mb"] = total ? Json(static_cast<double>(*total) / kMb) : Json();
  json["memory_percent"] = total && memory.mean
                               ? Json(*memory.mean * kMb / static_cast<double>(*total) * kPerCent)
                               : Json();
  add_range(json, "temperature_c",
            range_of(trials, 1, [](const DeviceUse& use) { return use.temperature(); }));
  add_range(json, "power_draw_w",
            range_of(trials, 1, [](const DeviceUse& use) { return use.power_watts(); }));
  json["energy_joules"] = or_null(joules_of(trials));
  json["samples"] = std::accumulate(trials.begin(), trials.end(), std::uint64_t{0},
                                    [](std::uint64_t sum, const PointDevice* device) {
                                      return sum + device->use.sample_count();
                                    });
  json["missing_reason"] = missing_json(
      json, {"utilization_percent", "memory_used_mb", "temperature_c", "power_draw_w"}, seconds);
  return json;
}

// "gpu_3" of cuda:3, "gpu_1_0" of the slice cuda:1:0.
std::string gpu_key(const std::string& name) {
  auto number = name.substr(name.find(':') + 1);
  std::ranges::replace(number, ':', '_');
  return "gpu_" + number;
}

}  // namespace

// The CPUs of the machine together: on most machines one device.
Json cpu_stats_json(const DevicesOverTrials& devices, double seconds, const std::string& none) {
  std::vector<const PointDevice*> all;
  for (const auto& [name, trials] : devices) {
    if (trials.front()->identity.device.kind == DeviceKind::Cpu) {
      all.insert(all.end(), trials.begin(), trials.end());
    }
  }
  Json json;
  add_range(json, "utilization_percent",
            range_of(all, kPerCent, [](const DeviceUse& use) { return use.utilization(); }));
  json["missing_reason"] =
      none.empty() ? missing_json(json, {"utilization_percent"}, seconds) : Json(none);
  return json;
}

Json gpu_stats_json(const DevicesOverTrials& devices, double seconds) {
  auto json = Json::object();
  for (const auto& [name, trials] : devices) {
    const auto& identity = trials.front()->identity;
    if (!trials.front()->is_own || identity.device.kind == DeviceKind::Cpu) continue;
    json[gpu_key(name)] = gpu_json(trials, seconds);
  }
  return json;
}

// Of a device that told nothing, so that the keys have one source.
std::vector<std::string> gpu_stat_keys() {
  const PointDevice none{.identity = {}, .name = {}};
  const auto json = gpu_json({&none}, 0);
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  return keys;
}

}  // namespace muster
