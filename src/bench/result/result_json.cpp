// Times are in seconds, but those of samples in whole nanoseconds: integers keep every digit and
// take half the space.
#include "bench/result/result_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_values.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr double kNanoseconds = 1e9;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json estimate_json(const Estimate& estimate) {
  return {
      {"value", estimate.value}, {"low", or_null(estimate.low)}, {"high", or_null(estimate.high)}};
}

Json distribution_json(const std::optional<Distribution>& distribution) {
  if (!distribution) return nullptr;
  Json json{{"count", distribution->count},
            {"mean", estimate_json(distribution->mean)},
            {"min", distribution->least},
            {"max", distribution->most}};
  for (const auto& one : distribution->percentiles) {
    constexpr double kPerCent = 100;
    auto name = fmt::format("p{:g}", one.share * kPerCent);
    std::erase(name, '.');  // p999
    json[name] = nullptr;
    if (!one.estimate) continue;
    json[name] = estimate_json(*one.estimate);
    json[name]["effective_count"] = std::floor(one.effective_count);
  }
  return json;
}

Json environment_json(const BenchEnvironment& environment) {
  return {{"cpu", environment.cpu_model},
          {"logical_cpus", environment.logical_cpus},
          {"cores", environment.core_count},
          {"cpu_limit_cores", or_null(environment.cpu_limit_cores)},
          {"instruction_sets", environment.instruction_sets},
          {"clock_hertz", or_null(environment.clock_hertz)},
          {"clock_max_hertz", or_null(environment.clock_max_hertz)},
          {"governor", text_or_null(environment.governor)},
          {"clock_source", text_or_null(environment.clock_source)},
          {"memory_bytes", environment.memory_bytes},
          {"kernel", environment.kernel},
          {"hypervisor", text_or_null(environment.hypervisor)}};
}

Json machine_json(const MachineUse& use) {
  auto load = Json::array();
  for (const auto& one : use.load_average) load.push_back(or_null(one));
  return {{"busy_share", or_null(use.busy_share)},
          {"stolen_share", or_null(use.stolen_share)},
          {"others_share", or_null(use.others_share)},
          {"load_average", std::move(load)}};
}

Json nanoseconds(double seconds) {
  return std::isfinite(seconds) ? Json(std::llround(seconds * kNanoseconds)) : Json(nullptr);
}

template <typename Get>
Json column(const std::vector<Sample>& samples, Get get) {
  auto values = Json::array();
  for (const auto& sample : samples) values.push_back(get(sample));
  return values;
}

void add_token_columns(Json& json, const TrialSamples& trial) {
  const auto& samples = trial.samples;
  json["first_token_ns"] =
      column(samples, [](const Sample& s) { return nanoseconds(s.first_token - s.intended); });
  json["last_token_ns"] =
      column(samples, [](const Sample& s) { return nanoseconds(s.last_token - s.intended); });
  json["token_events"] = column(samples, [](const Sample& s) { return Json(s.token_events); });
  auto gaps = Json::array();
  for (const auto& sample : samples) {
    for (std::uint32_t i = 1; i < sample.token_events; ++i) {
      gaps.push_back(nanoseconds(trial.gaps[sample.gaps_begin + i - 1]));
    }
  }
  json["token_gaps_ns"] = std::move(gaps);
}

// Columns and not a list of objects: names stand once, which makes the file a fraction of its size.
Json samples_json(const TrialSamples& trial) {
  const auto& samples = trial.samples;
  const auto count_or_null = [](std::int64_t count) {
    return count < 0 ? Json(nullptr) : Json(count);
  };
  Json json;
  json["intended_ns"] = column(samples, [](const Sample& s) { return nanoseconds(s.intended); });
  json["latency_ns"] = column(samples, [](const Sample& s) { return nanoseconds(s.latency()); });
  json["connection_wait_ns"] =
      column(samples, [](const Sample& s) { return nanoseconds(s.ready - s.intended); });
  json["lag_ns"] = column(samples, [](const Sample& s) { return nanoseconds(s.lag()); });
  json["sending_ns"] =
      column(samples, [](const Sample& s) { return nanoseconds(s.sent - s.started); });
  json["first_byte_wait_ns"] =
      column(samples, [](const Sample& s) { return nanoseconds(s.first_byte - s.sent); });
  json["receiving_ns"] =
      column(samples, [](const Sample& s) { return nanoseconds(s.end - s.first_byte); });
  json["status"] = column(samples, [](const Sample& s) { return Json(s.status); });
  json["outcome"] =
      column(samples, [](const Sample& s) { return Json(sample_end_name(s.outcome)); });
  json["request"] = column(samples, [](const Sample& s) { return Json(s.request); });
  json["input_tokens"] =
      column(samples, [&](const Sample& s) { return count_or_null(s.input_tokens); });
  json["output_tokens"] =
      column(samples, [&](const Sample& s) { return count_or_null(s.output_tokens); });
  if (!trial.gaps.empty() ||
      std::ranges::any_of(samples, [](const Sample& s) { return s.token_events > 0; })) {
    add_token_columns(json, trial);
  }
  for (const auto& stage : trial.stages) {
    auto values = Json::array();
    for (const double seconds : stage.seconds) values.push_back(nanoseconds(seconds));
    json["server_stages_ns"][stage.name] = std::move(values);
  }
  auto ticks = Json::array();
  for (const double lateness : trial.tick_lateness) ticks.push_back(nanoseconds(lateness));
  json["timer_lateness_ns"] = std::move(ticks);
  return json;
}

Json tokens_json(const std::optional<TokenCounts>& tokens) {
  if (!tokens) return nullptr;
  return {{"input", tokens->input},
          {"output", tokens->output},
          {"input_per_second", or_null(tokens->input_per_second)},
          {"output_per_second", or_null(tokens->output_per_second)},
          {"output_pieces", tokens->output_pieces},
          {"output_source",
           tokens->output_source.empty() ? Json(nullptr) : Json(tokens->output_source)}};
}

Json parts_json(const TrialSummary& summary) {
  const auto& parts = summary.parts;
  Json json{{"connection_wait", parts.connection_wait},
            {"lag", parts.lag},
            {"sending", parts.sending},
            {"first_byte_wait", parts.first_byte_wait},
            {"receiving", parts.receiving}};
  return json;
}

void add_figures(Json& json, const TrialSummary& summary) {
  json["requests"] = {{"sent", summary.sent}, {"answered", summary.answered}};
  json["requests"]["warm_up"] = summary.warm_up_sent;
  json["requests"]["missed_at_end"] = summary.missed_at_end;
  json["requests"]["failed"] = Json::object();
  for (const auto& [name, count] : summary.failed)
    json["requests"]["failed"][std::string(name)] = count;
  json["per_second"] = {
      {"offered", or_null(summary.offered_per_second)},
      {"sent", summary.sent_per_second},
      {"answered", summary.has_rate() ? Json(summary.answered_per_second) : Json(nullptr)}};
  json["latency"] = distribution_json(summary.latency);
  json["service"] = distribution_json(summary.service);
  json["lag"] = distribution_json(summary.lag);
  json["first_token"] = distribution_json(summary.first_token);
  json["token_gap"] = distribution_json(summary.token_gap);
  json["per_token"] = distribution_json(summary.per_token);
  json["tokens"] = tokens_json(summary.tokens);
  json["parts"] = parts_json(summary);
  json["server_stages"] = Json::object();
  for (const auto& stage : summary.stages) json["server_stages"][stage.name] = stage.seconds;
  json["server_stage_doubts"] = {{"too_long", summary.stage_doubts.too_long},
                                 {"left_out", summary.stage_doubts.left_out}};
  json["figures"] = Json::object();
  for (const auto& [name, value] : figures_of(summary)) json["figures"][name] = number(value);
}

Json trial_json(const BenchTrial& trial) {
  const auto& summary = trial.summary;
  const auto& generator = summary.generator;
  Json json{{"seed", trial.seed},
            {"started_at", trial.started_at},
            {"valid", summary.is_valid()},
            {"generator",
             {{"measure", generator.what},
              {"p99", generator.lag_p99},
              {"limit", generator.limit},
              {"in_time", generator.is_in_time},
              {"cpu_seconds", trial.samples.own_cpu_seconds}}},
            {"warm_up_seconds", summary.warm_up_seconds},
            {"counted_seconds", summary.counted_seconds},
            {"steady", or_null(summary.is_steady)},
            {"drift", summary.drift},
            {"kept_up", summary.has_kept_up}};
  add_figures(json, summary);
  json["connections"] = {{"opened", trial.samples.connections_opened},
                         {"busy_most", trial.samples.connections_most}};
  json["machine"] = machine_json(trial.machine);
  json["problems"] = trial.samples.problems;
  json["samples"] = samples_json(trial.samples);
  return json;
}

Json objectives_json(const std::vector<ObjectiveResult>& objectives) {
  auto json = Json::array();
  for (const auto& one : objectives) {
    json.push_back({{"objective", one.objective.text},
                    {"value", or_null(one.value)},
                    {"met", one.is_met},
                    {"why_unknown", text_or_null(one.why_unknown)}});
  }
  return json;
}

Json point_json(const BenchPoint& point) {
  Json json{{"load", point.load}, {"objectives", objectives_json(point.objectives)}};
  json["over_trials"] = Json::object();
  for (const auto& [name, values] : trial_figures(point)) {
    const auto mean = figure_mean(point, name, values);
    const bool has_interval = values.size() > 1;
    json["over_trials"][name] = {{"mean", mean.mean},
                                 {"low", has_interval ? Json(mean.low) : Json(nullptr)},
                                 {"high", has_interval ? Json(mean.high) : Json(nullptr)}};
  }
  auto& trials = json["trials"] = Json::array();
  for (const auto& trial : point.trials) trials.push_back(trial_json(trial));
  return json;
}

}  // namespace

std::string result_json(const BenchResult& result) {
  Json json{{"schema_version", kSchemaVersion},
            {"tool", {{"name", "muster bench"}, {"build", result.environment.build}}},
            {"valid", result.is_valid()},
            {"target",
             {{"api", result.api},
              {"url", result.url},
              {"model", text_or_null(result.model)},
              {"server", text_or_null(result.server)}}},
            {"command", result.command},
            {"settings", result.settings},
            {"environment", environment_json(result.environment)}};
  if (!result.run.empty()) json["run"] = Json::parse(result.run);
  json["peak"] = nullptr;
  if (result.peak) {
    json["peak"] = {{"rate", or_null(result.peak->rate)},
                    {"missed", or_null(result.peak->missed)},
                    {"unknown", or_null(result.peak->unknown)}};
  }
  json["order"] = result.order;
  auto& points = json["points"] = Json::array();
  for (const auto& point : result.points) points.push_back(point_json(point));
  // Names come from servers and command lines: what is no UTF-8 is replaced.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster
