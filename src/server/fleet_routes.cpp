// Every answer is made from one view, taken in one turn of the loop, so that its parts agree with
// each other. Quantiles of latency come from histogram buckets and are upper bounds, hence
// `at_most`; above the last bucket there is nothing true to say, and the answer is null. Settings
// come as JSON and are turned into the text that a flag would have, so that one parser judges both.

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "base/text.h"
#include "server/gpu_facts.h"
#include "server/handlers.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

/// What the routes of /multigpu show: the GPUs as they are read, and the fleet that works on them.
struct GpuView {
  TelemetrySnapshot snapshot;
  FleetView fleet;
  GpusSeen gpus;
  Json info;
};

GpuView look(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  GpuView view;
  view.snapshot = snapshot_of(state);
  view.fleet = state.service.fleet();
  view.fleet.groups = devices_of(state);
  view.gpus = gpu_facts(view.snapshot, view.fleet.groups);
  view.info = gpu_info(view.snapshot);
  return view;
}

// A drained device counts as whole, because an administrator has put it aside on purpose, and so
// does one that no model is on; one that works for one model and lacks another does not.
std::string_view fleet_word(const ServerState& server, const std::vector<GroupStatus>& devices) {
  if (!takes_calls(server)) return "unavailable";
  const auto models = server.service.models();
  const auto decoders = server.generation.decoders().hosted();
  const bool is_whole = std::all_of(devices.begin(), devices.end(), [&](const auto& device) {
    if (device.state == GroupState::Ready) return missing_models(device, models, decoders).empty();
    return device.state == GroupState::Drained || device.state == GroupState::Idle;
  });
  return is_whole ? "healthy" : "degraded";
}

Json workers_json(const std::vector<GroupStatus>& devices) {
  Json workers = Json::object();
  for (const auto& device : devices) workers[device.name] = group_state_name(device.state);
  return workers;
}

Json config_answer(const ExchangePtr& exchange) {
  const GpuView view = look(exchange);
  return {{"success", true},
          {"config",
           Json::parse(exchange->state().hooks.config_json(exchange->is_admin), nullptr, false)},
          {"available_gpus", view.gpus.available_ids},
          {"gpu_info", view.info}};
}

// The upper bound of the bucket that holds this share of the answers, in ms; null above the last
// bound, and before the first answer.
Json quantile_bound(const ServiceStatus& service, double share) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : service.latency_counts) all += count;
  if (all == 0) return nullptr;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < ServiceStatus::kBounds.size(); ++i) {
    below += service.latency_counts[i];
    if (static_cast<double>(below) >= share * static_cast<double>(all)) {
      return ServiceStatus::kBounds[i] * 1000;
    }
  }
  return nullptr;
}

Json latency_json(const ServiceStatus& service) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : service.latency_counts) all += count;
  return {{"mean_ms", all == 0 ? Json(nullptr)
                               : Json(service.latency_seconds * 1000 / static_cast<double>(all))},
          {"p50_at_most_ms", quantile_bound(service, 0.50)},
          {"p95_at_most_ms", quantile_bound(service, 0.95)},
          {"p99_at_most_ms", quantile_bound(service, 0.99)}};
}

Json speeds_json(const std::vector<GroupStatus>& devices) {
  Json speeds = Json::object();
  for (const auto& device : devices) {
    const double ready = device.ready_seconds;
    speeds[device.name] = {
        {"tokens_per_second", or_null(device.tokens_per_second)},
        {"busy_share", ready > 0 ? Json(device.engine_seconds / ready) : Json(nullptr)},
        {"texts", device.text_count},
        {"tokens", device.token_count}};
  }
  return speeds;
}

// A scalar of a settings body as the words that a flag would have; nullopt for anything else.
std::optional<std::string> scalar_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  return std::nullopt;
}

// A list of scalars too, with commas between.
std::optional<std::string> list_text(const Json& value) {
  if (!value.is_array()) return scalar_text(value);
  std::string text;
  for (const auto& item : value) {
    const auto word = scalar_text(item);
    if (!word) return std::nullopt;
    text += (text.empty() ? "" : ",") + *word;
  }
  return text;
}

// A mapping to these too, as a file has it: "query=cuda:0;document=cuda:1,cuda:2".
std::optional<std::string> setting_text(const Json& value) {
  if (!value.is_object()) return list_text(value);
  std::string text;
  for (const auto& [key, item] : value.items()) {
    const auto words = list_text(item);
    if (!words) return std::nullopt;
    text += (text.empty() ? "" : ";") + key + "=" + *words;
  }
  return text;
}

ApiResult<std::map<std::string, std::string>> parse_settings(const std::string& body) {
  constexpr std::size_t kSettingsMost = 256;  // more than there are
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) {
    return ApiError{.status = 400, .message = "The body must be a JSON object of settings."};
  }
  if (json.empty() || json.size() > kSettingsMost) {
    return ApiError{.status = 400, .message = "The body must name at least one setting."};
  }
  std::map<std::string, std::string> settings;
  for (const auto& [name, value] : json.items()) {
    const auto text = setting_text(value);
    if (!text) {
      return wrong_field(name, "invalid_type",
                         "A setting must be a string, a number, a boolean, a list or a mapping "
                         "of these.");
    }
    settings.emplace(name, *text);
  }
  return settings;
}

}  // namespace

void answer_fleet_health(const ExchangePtr& exchange) {
  const GpuView view = look(exchange);
  exchange->answer(200, {{"status", fleet_word(exchange->state(), view.fleet.groups)},
                         {"timestamp", view.gpus.timestamp},
                         {"cuda_available", view.gpus.has_cuda},
                         {"gpu_count", view.gpus.ids.size()},
                         {"available_gpus", view.gpus.available_ids},
                         {"gpu_info", view.info},
                         {"workers", workers_json(view.fleet.groups)}});
}

void answer_fleet_config(const ExchangePtr& exchange) {
  exchange->answer(200, config_answer(exchange));
}

void change_config(const ExchangePtr& exchange) {
  auto settings = parse_settings(exchange->request.body);
  if (!settings) return exchange->refuse(settings.error());
  const auto done = exchange->state().hooks.change_config({.values = std::move(*settings),
                                                           .asker = exchange->asker(),
                                                           .request_id = exchange->request_id});
  if (!done) {
    return exchange->refuse(api_error(done.error()));
  }
  exchange->answer(200, config_answer(exchange));
}

void answer_fleet_stats(const ExchangePtr& exchange) {
  const GpuView view = look(exchange);
  exchange->answer(200, {{"gpu_info", view.info},
                         {"available_gpus", view.gpus.available_ids},
                         {"total_gpus", view.gpus.ids.size()},
                         {"gpu_utilization", field_of(view.info, "gpu_utilization")},
                         {"memory_utilization", field_of(view.info, "memory_utilization")},
                         {"temperature", field_of(view.info, "temperature")}});
}

void answer_one_gpu(const ExchangePtr& exchange) {
  const GpuView view = look(exchange);
  for (const auto& [key, gpu] : view.info.items()) {
    if (gpu["id"].dump() == exchange->parameter) return exchange->answer(200, gpu);
  }
  std::string there;
  for (const std::uint32_t id : view.gpus.ids) {
    there += (there.empty() ? "; there is " : ", ") + std::to_string(id);
  }
  exchange->refuse(api_error(404, "No GPU has the id '" + exchange->parameter + "'" +
                                      (there.empty() ? "; there is no GPU" : there)));
}

void answer_resources(const ExchangePtr& exchange) {
  const GpuView view = look(exchange);
  exchange->answer(200, {{"timestamp", view.gpus.timestamp},
                         {"gpu_count", view.gpus.ids.size()},
                         {"available_gpus", view.gpus.available_ids},
                         {"average_gpu_utilization", mean_of(view.info, "gpu_utilization")},
                         {"average_memory_utilization", mean_of(view.info, "memory_utilization")},
                         {"gpu_stats", view.info}});
}

void answer_performance(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  const GpuView view = look(exchange);
  const ServiceStatus service = state.service.status();
  const auto lookups = service.cache.hit_count + service.cache.miss_count;
  exchange->answer(
      200, {{"timestamp", view.gpus.timestamp},
            {"uptime_seconds", seconds(state.clock.now() - state.started)},
            {"requests", service.request_count},
            {"refused", service.refused_count + service.limited_count},
            {"failed", service.failed_count},
            {"texts", service.text_count},
            {"tokens", service.token_count},
            {"latency", latency_json(service)},
            {"cache_hit_rate", lookups == 0 ? Json(nullptr)
                                            : Json(static_cast<double>(service.cache.hit_count) /
                                                   static_cast<double>(lookups))},
            {"queued_texts", view.fleet.queued_text_count()},
            {"devices", speeds_json(view.fleet.groups)}});
}

}  // namespace muster
