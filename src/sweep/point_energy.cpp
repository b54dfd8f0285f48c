// The energy of a point: joules over the same window in which its requests were counted, or null
// with the reason. `energy_wh` is that of the point's own devices, as in ai_energy_benchmarks,
// whose headline is the GPUs'; a machine's memory has no counter of its own that is read here.
#include "sweep/point_energy.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "base/text.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;
using K = SweepKey;

constexpr double kJoulesPerWh = 3600;
constexpr double kKilo = 1000;

// Joules of several devices: all of them, or the first reason why not.
struct EnergySum {
  std::optional<double> joules = {};
  double error_joules = 0;
  std::string method = {};  // "counter", "integrated", "mixed"
  std::string missing_reason = {};
  std::string counter_missing_reason = {};  // of the first one without the counter
  bool was_throttled = false;
};

void add_window(EnergySum& sum, const std::string& name, const WindowEnergy& energy) {
  sum.joules = sum.joules.value_or(0) + *energy.joules;
  sum.error_joules += energy.error_joules.value_or(0);
  sum.was_throttled = sum.was_throttled || energy.was_throttled;
  if (sum.counter_missing_reason.empty() && !energy.counter_missing_reason.empty()) {
    sum.counter_missing_reason = name + ": " + energy.counter_missing_reason;
  }
  if (sum.method.empty()) {
    sum.method = energy.method;
  } else if (sum.method != energy.method) {
    sum.method = "mixed";
  }
}

template <typename Counts>
EnergySum energy_of(const DevicesOverTrials& devices, const std::string& none, Counts counts) {
  EnergySum sum{.missing_reason = none};
  for (const auto& [name, trials] : devices) {
    if (!counts(*trials.front())) continue;
    for (const auto* device : trials) {
      if (!device->energy.joules) {
        return {.missing_reason = name + ": " + device->energy.missing_reason};
      }
      add_window(sum, name, device->energy);
    }
  }
  if (sum.joules) sum.missing_reason.clear();
  return sum;
}

// A device of the point that not every trial has watched: the joules of the others are not the
// point's. CPUs are watched by their nodes, whatever the point calls them.
std::string unwatched_device(const SweepPoint& point, const DevicesOverTrials& devices) {
  for (const auto& name : split(point.at(K::DeviceIds), ',')) {
    const bool is_cpus = name.starts_with("cpu") || name.ends_with("xcpu");
    if (!name.empty() && !is_cpus && !devices.contains(name)) return name;
  }
  return {};
}

bool is_cpu(const PointDevice& device) { return device.identity.device.kind == DeviceKind::Cpu; }

void add_wh(Json& json, const std::string& name, const std::optional<double>& joules) {
  json[name + "_wh"] = joules ? Json(*joules / kJoulesPerWh) : Json();
  json[name + "_kwh"] = joules ? Json(*joules / kJoulesPerWh / kKilo) : Json();
}

// GPUs and CPUs together, where the energy of every part that computed is known.
std::optional<double> total_joules(const EnergySum& gpus, const EnergySum& cpus, bool has_gpu) {
  if (!cpus.joules || (has_gpu && !gpus.joules)) return std::nullopt;
  return *cpus.joules + gpus.joules.value_or(0);
}

void add_emissions(Json& json, const SweepPoint& point, const std::optional<double>& joules) {
  const auto& intensity = point.at(K::CarbonIntensity);
  std::optional<double> grams;
  std::string reason;
  if (intensity.empty()) {
    reason = "metrics.carbon_intensity_g_per_kwh is not stated";
  } else if (!joules) {
    reason = "the energy is not known";
  } else {
    grams = *joules / kJoulesPerWh / kKilo * Json::parse(intensity).get<double>();
  }
  json["emissions_g_co2eq"] = or_null(grams);
  json["emissions_kg_co2eq"] = grams ? Json(*grams / kKilo) : Json();
  json["emissions_missing_reason"] = reason.empty() ? Json() : Json(reason);
  json["carbon_intensity_g_per_kwh"] = intensity.empty() ? Json() : Json::parse(intensity);
  const auto text = [&](K key) { return point.has(key) ? Json(point.at(key)) : Json(); };
  json["carbon_intensity_source"] = text(K::CarbonSource);
  json["project_name"] = text(K::ProjectName);
  json["country"] = text(K::Country);
  json["region"] = text(K::Region);
}

Json share(const std::optional<double>& joules, double count) {
  return joules && count > 0 ? Json(*joules / count) : Json();
}

// False where somebody was seen in one trial; nullopt where one cannot tell.
std::optional<bool> is_exclusive(const std::vector<TrialTelemetry>& telemetry) {
  const auto is = [](std::optional<bool> value) {
    return [value](const TrialTelemetry& trial) { return trial.is_exclusive == value; };
  };
  if (std::ranges::any_of(telemetry, is(false))) return false;
  const bool can_tell = !telemetry.empty() && std::ranges::all_of(telemetry, is(true));
  return can_tell ? std::optional(true) : std::nullopt;
}

void add_tokens(PointWork& work, const Sample& sample) {
  if (sample.input_tokens < 0) {
    work.input_tokens = std::nullopt;
  } else if (work.input_tokens) {
    *work.input_tokens += static_cast<std::uint64_t>(sample.input_tokens);
  }
  const auto output = sample.output_tokens >= 0 ? sample.output_tokens
                                                : static_cast<std::int64_t>(sample.token_events);
  const bool has_output = sample.output_tokens >= 0 || sample.token_events > 0;
  if (has_output) {
    work.output_tokens = work.output_tokens.value_or(0) + static_cast<std::uint64_t>(output);
  }
}

}  // namespace

PointWork work_of(const BenchPoint& point) {
  PointWork work{.input_tokens = 0};
  for (const auto& trial : point.trials) {
    double end = trial.samples.sending_seconds;
    for (const auto& sample : trial.samples.samples) {
      ++work.requests;
      if (std::isfinite(sample.end)) end = std::max(end, sample.end);
      if (!sample.is_answered()) continue;
      ++work.answered;
      add_tokens(work, sample);
    }
    work.seconds += end;
  }
  if (work.answered == 0) work.input_tokens = std::nullopt;
  return work;
}

DevicesOverTrials devices_over_trials(const std::vector<TrialTelemetry>& telemetry) {
  DevicesOverTrials all;
  for (const auto& trial : telemetry) {
    for (const auto& device : trial.devices) all[device.name].push_back(&device);
  }
  std::erase_if(all, [&](const auto& one) { return one.second.size() != telemetry.size(); });
  return all;
}

std::optional<double> joules_of(const std::vector<const PointDevice*>& trials) {
  double sum = 0;
  for (const auto* device : trials) {
    if (!device->energy.joules) return std::nullopt;
    sum += *device->energy.joules;
  }
  return sum;
}

Json energy_json(const PointReport& report, const DevicesOverTrials& devices, const PointWork& work,
                 double texts_per_request) {
  auto none = unwatched_trial_reason(report);
  const auto unwatched = none.empty() ? unwatched_device(*report.point, devices) : std::string();
  if (none.empty()) none = "no device of the point was watched";
  const auto sum_of = [&](auto counts) {
    if (!unwatched.empty()) return EnergySum{.missing_reason = unwatched + " was not watched"};
    return energy_of(devices, none, counts);
  };
  const auto own = sum_of([](const PointDevice& device) { return device.is_own; });
  const auto gpus =
      sum_of([](const PointDevice& device) { return device.is_own && !is_cpu(device); });
  const auto cpus =
      energy_of(devices, none, [](const PointDevice& device) { return is_cpu(device); });
  const bool has_gpu = !unwatched.empty() || std::ranges::any_of(devices, [](const auto& one) {
    return one.second.front()->is_own && !is_cpu(*one.second.front());
  });
  const auto& joules = own.joules;
  Json json{
      {"joules", or_null(joules)},
      {"error_joules", joules ? Json(own.error_joules) : Json()},
      {"method", joules ? Json(own.method) : Json()},
      {"missing_reason", joules ? Json() : Json(own.missing_reason)},
      {"counter_missing_reason",
       joules && !own.counter_missing_reason.empty() ? Json(own.counter_missing_reason) : Json()},
      {"exclusive", or_null(is_exclusive(report.telemetry))},
      {"throttled", joules ? Json(own.was_throttled) : Json()},
      {"joules_per_prompt", share(joules, static_cast<double>(work.answered) * texts_per_request)},
      {"joules_per_output_token",
       share(joules, static_cast<double>(work.output_tokens.value_or(0)))}};
  const auto tokens = work.tokens();
  json["tokens_per_joule"] =
      joules && *joules > 0 && tokens ? Json(static_cast<double>(*tokens) / *joules) : Json();
  add_wh(json, "energy", joules);
  add_wh(json, "gpu_energy", gpus.joules);
  add_wh(json, "cpu_energy", cpus.joules);
  add_wh(json, "ram_energy", std::nullopt);  // no counter of it is read
  add_wh(json, "total_energy", total_joules(gpus, cpus, has_gpu));
  json["duration_seconds"] = work.seconds;
  add_emissions(json, *report.point, joules);
  return json;
}

}  // namespace muster
