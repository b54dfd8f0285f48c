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

#include "base/json_values.h"
#include "base/text.h"
#include "sweep/device_stats.h"
#include "sweep/point_energy.h"
#include "sweep/sweep_keys.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;
using K = SweepKey;

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

// null where none was set, and where none is missed and one is not known.
Json objectives_json(const BenchPoint& point) {
  if (point.objectives.empty()) return nullptr;
  if (std::ranges::any_of(point.objectives, &ObjectiveResult::is_missed)) return false;
  return std::ranges::all_of(point.objectives, &ObjectiveResult::is_met) ? Json(true) : Json();
}

// Who has counted the tokens of replies; where there are none, those of the prompts.
Json token_source(const BenchPoint& point, const PointWork& work) {
  const auto& tokens = point.trials.front().summary.tokens;
  if (work.output_tokens) {
    return tokens && !tokens->output_source.empty() ? Json(tokens->output_source) : Json();
  }
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

std::vector<std::string> reasons_of(const PointReport& report) {
  auto reasons = report.invalid_reasons;
  if (!report.result->is_valid()) {
    reasons.insert(reasons.begin(), "the load generator was late: the machine was too busy");
  }
  return reasons;
}

}  // namespace

std::string unwatched_trial_reason(const PointReport& report) {
  if (report.telemetry.empty()) return report.unwatched_reason;
  for (const auto& trial : report.telemetry) {
    if (!trial.missing_reason.empty()) return trial.missing_reason;
  }
  return {};
}

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
  json["cpu_stats"] = cpu_stats_json(devices, work.seconds, unwatched_trial_reason(report));
  json["gpu_stats"] = gpu_stats_json(devices, work.seconds);
  return json;
}

Json record_value(const Json& record, std::string_view part, std::string_view key) {
  const auto found = record.find(std::string(part));
  if (found == record.end() || !found->is_object()) return nullptr;
  const auto value = found->find(std::string(key));
  return value == found->end() ? Json(nullptr) : *value;
}

}  // namespace muster
