// A point's record in the nested names of ai_energy_benchmarks, so that what reads that program's
// results reads these. Where that program had 0 for what it could not measure, there is null here
// and the reason beside it. The whole trial counts for tokens and joules, since both belong to the
// same window; latencies and rates are those of its steady part.
#include "sweep/point_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/json_values.h"
#include "base/text.h"
#include "sweep/point_energy.h"
#include "sweep/sweep_keys.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;
using K = SweepKey;

constexpr double kMb = 1 << 20;  // as nvidia-smi counts
constexpr double kPerCent = 100;

// "2026-11-26T21:30:00Z".
std::string utc_text(double unix_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

// GPUs by their number, as the documents have them: [0, 1]; other devices by their names.
Json device_list(const std::string& names) {
  auto list = Json::array();
  if (names.empty()) return list;
  for (const auto& name : split(names, ',')) {
    constexpr std::string_view kCuda = "cuda:";
    std::uint32_t index = 0;
    const auto digits = std::string_view(name).substr(name.starts_with(kCuda) ? kCuda.size() : 0);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    const bool is_whole = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
    list.push_back(name.starts_with(kCuda) && is_whole ? Json(index) : Json(name));
  }
  return list;
}

Json value_json(const SweepKeyRow& row, const std::string& text) {
  if (row.key == K::DeviceIds) return device_list(text);
  if (text.empty()) return nullptr;
  switch (row.kind) {
    case SweepValueKind::Count:
    case SweepValueKind::Number:
    case SweepValueKind::Switch:
      return Json::parse(text);
    default:
      return text;
  }
}

Json config_json(const SweepPoint& point) {
  Json json;
  for (const auto& row : sweep_keys()) {
    if (!row.column.empty()) json[std::string(row.column)] = value_json(row, point.at(row.key));
  }
  return json;
}

Json availability_json(const PointAvailability& availability) {
  return {{"requested", availability.requested},
          {"available", availability.available},
          {"unavailable", availability.unavailable},
          {"errors", availability.errors},
          {"all_available", availability.all_available()}};
}

// ---- What was asked and answered ----

Json figure(const FigureMap& figures, std::string_view name) {
  const auto found = figures.find(name);
  return found == figures.end() ? Json(nullptr) : Json(found->second);
}

// The least and the most latency of all trials, of those that were counted.
std::pair<std::optional<double>, std::optional<double>> latency_range(const BenchPoint& point) {
  std::optional<double> least;
  std::optional<double> most;
  for (const auto& trial : point.trials) {
    const auto& latency = trial.summary.latency;
    if (!latency) continue;
    least = std::min(least.value_or(latency->least), latency->least);
    most = std::max(most.value_or(latency->most), latency->most);
  }
  return {least, most};
}

void add_latencies(Json& json, const BenchPoint& point, const FigureMap& figures) {
  const auto [least, most] = latency_range(point);
  json["avg_latency_seconds"] = figure(figures, "latency_mean");
  json["min_latency_seconds"] = or_null(least);
  for (const auto* name : {"p50", "p90", "p95", "p99"}) {
    json[fmt::format("{}_latency_seconds", name)] =
        figure(figures, fmt::format("latency_{}", name));
  }
  json["max_latency_seconds"] = or_null(most);
  json["avg_time_to_first_token"] = figure(figures, "ttft_mean");
  json["p95_time_to_first_token"] = figure(figures, "ttft_p95");
  json["avg_time_per_output_token"] = figure(figures, "tpot_mean");
}

Json steady_json(const BenchPoint& point) {
  std::optional<bool> is_steady = true;
  for (const auto& trial : point.trials) {
    if (!trial.summary.is_steady) return nullptr;
    is_steady = *is_steady && *trial.summary.is_steady;
  }
  return or_null(is_steady);
}

// null where none was set.
Json objectives_json(const BenchPoint& point) {
  if (point.objectives.empty()) return nullptr;
  return std::ranges::all_of(point.objectives, &ObjectiveResult::is_met);
}

// Who has counted the tokens of replies; where there are none, those of the prompts.
Json token_source(const BenchPoint& point, const PointWork& work) {
  const auto& tokens = point.trials.front().summary.tokens;
  if (work.output_tokens) return tokens ? Json(tokens->output_source) : Json();
  return work.input_tokens ? Json("usage") : Json();
}

Json summary_json(const BenchPoint& point, const PointWork& work, double texts_per_request) {
  const auto figures = mean_figures(point);
  const auto prompts = [&](std::uint64_t requests) {
    return static_cast<std::uint64_t>(static_cast<double>(requests) * texts_per_request);
  };
  Json json{{"total_prompts", prompts(work.requests)},
            {"successful_prompts", prompts(work.answered)},
            {"failed_prompts", prompts(work.requests - work.answered)},
            {"total_requests", work.requests},
            {"total_duration_seconds", work.seconds}};
  add_latencies(json, point, figures);
  const auto tokens = work.tokens();
  json["total_tokens"] = or_null(tokens);
  json["total_prompt_tokens"] = or_null(work.input_tokens);
  json["total_completion_tokens"] = or_null(work.output_tokens);
  json["throughput_tokens_per_second"] =
      tokens && work.seconds > 0 ? Json(static_cast<double>(*tokens) / work.seconds) : Json();
  const auto rate = figures.find("throughput");
  json["throughput_prompts_per_second"] =
      rate == figures.end() ? Json() : Json(rate->second * texts_per_request);
  json["throughput_output_tokens_per_second"] =
      work.output_tokens.value_or(0) > 0 ? figure(figures, "token_throughput") : Json();
  json["objectives_met"] = objectives_json(point);
  json["trials"] = point.trials.size();
  json["steady"] = steady_json(point);
  json["token_source"] = token_source(point, work);
  return json;
}

// ---- What the devices did ----

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

Json gpu_json(const std::vector<const PointDevice*>& trials) {
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
  return json;
}

// The CPUs of the machine together: on most machines one device.
Json cpu_json(const DevicesOverTrials& devices) {
  std::vector<const PointDevice*> all;
  for (const auto& [name, trials] : devices) {
    if (trials.front()->identity.device.kind == DeviceKind::Cpu) {
      all.insert(all.end(), trials.begin(), trials.end());
    }
  }
  Json json;
  add_range(json, "utilization_percent",
            range_of(all, kPerCent, [](const DeviceUse& use) { return use.utilization(); }));
  return json;
}

// "gpu_3" of cuda:3, "gpu_1_0" of the slice cuda:1:0.
std::string gpu_key(const std::string& name) {
  auto number = name.substr(name.find(':') + 1);
  std::ranges::replace(number, ':', '_');
  return "gpu_" + number;
}

Json gpus_json(const DevicesOverTrials& devices) {
  auto json = Json::object();
  for (const auto& [name, trials] : devices) {
    const auto& identity = trials.front()->identity;
    if (!trials.front()->is_own || identity.device.kind == DeviceKind::Cpu) continue;
    json[gpu_key(name)] = gpu_json(trials);
  }
  return json;
}

std::vector<std::string> reasons_of(const PointReport& report) {
  auto reasons = report.invalid_reasons;
  if (!report.result->is_valid()) {
    reasons.insert(reasons.begin(), "the load generator was late: the machine was too busy");
  }
  return reasons;
}

}  // namespace

Json point_record(const PointReport& report) {
  const auto& point = *report.point;
  const auto& result = *report.result;
  const auto& load = result.points.front();
  const auto reasons = reasons_of(report);
  const auto work = work_of(load);
  const auto texts = static_cast<double>(load_of(point, report.task).texts_per_request);
  const auto devices = devices_over_trials(report.telemetry);
  Json json{{"point", point.id},
            {"timestamp", utc_text(load.trials.front().started_at)},
            {"valid", reasons.empty()},
            {"invalid_reasons", reasons}};
  json["config"] = config_json(point);
  json["availability"] = availability_json(report.availability);
  json["summary"] = summary_json(load, work, texts);
  json["energy"] = energy_json(report, devices, work, texts);
  json["backend_info"] = {{"type", point.at(K::BackendType)},
                          {"server", result.server.empty() ? Json() : Json(result.server)},
                          {"build", result.environment.build},
                          {"precision", or_null(report.precision)},
                          {"settings", report.settings.empty() ? Json() : Json(report.settings)}};
  json["environment"] = {{"cpu", result.environment.cpu_model},
                         {"logical_cpus", result.environment.logical_cpus},
                         {"kernel", result.environment.kernel}};
  json["cpu_stats"] = cpu_json(devices);
  json["gpu_stats"] = gpus_json(devices);
  return json;
}

Json record_value(const Json& record, std::string_view part, std::string_view key) {
  const auto found = record.find(std::string(part));
  if (found == record.end() || !found->is_object()) return nullptr;
  const auto value = found->find(std::string(key));
  return value == found->end() ? Json(nullptr) : *value;
}

// Of a device that told nothing, so that the keys have one source.
std::vector<std::string> gpu_stat_keys() {
  const PointDevice none{.identity = {}, .name = {}};
  const auto json = gpu_json({&none});
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  return keys;
}

}  // namespace muster
