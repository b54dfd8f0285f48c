// Routes that only look. Each answer is one snapshot taken on the loop, so its figures belong to
// the same moment, and nothing here waits for a device. The scrape joins the service's own metrics
// with those of telemetry, in this order. The OpenAPI document is put together from its parts once,
// on first use, and so is its JSON form.

#include <chrono>
#include <nlohmann/json.hpp>

#include "metrics/exposition.h"
#include "server/fleet_json.h"
#include "server/gpu_facts.h"
#include "server/handlers.h"
#include "server/openapi_text.inc"
#include "server/service_metrics.h"
#include "server/yaml_json.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

const std::string& openapi_text() {
  static const std::string whole = [] {
    std::string text;
    for (const std::string_view part : kOpenApiParts) text += part;
    return text;
  }();
  return whole;
}

}  // namespace

void answer_metrics(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  const auto fleet = state.service.fleet();
  ServiceFacts facts{.start_unix_seconds = state.start_unix_seconds,
                     .is_ready = takes_calls(state),
                     .service = state.service.status(),
                     .models = state.service.models(),
                     .decoders = state.generation.models(),
                     .devices = devices_of(state),
                     .queued_texts = fleet.queued_text_count(),
                     .queued_tokens = fleet.queued_token_count(),
                     .predicted_drain = fleet.predicted_drain,
                     .http = &state.statistics,
                     .generation = state.generation.status()};
  if (state.hooks.log_lost_count) facts.log_lost_count = state.hooks.log_lost_count();
  if (state.http != nullptr) {
    facts.connection_count = state.http->connection_count();
    facts.connections = state.http->counters();
    facts.memory_held = state.http->memory().held();
    facts.memory_most = state.http->memory().most();
  }
  if (state.audit) facts.audit = state.audit->status();
  if (state.searches) facts.searches = state.searches->status();
  std::string text = service_metrics_text(facts);
  if (state.collector != nullptr) {
    text += prometheus_text(state.collector->snapshot(), MetricSet::Muster);
  }
  exchange->answer({.status = 200,
                    .content_type = "text/plain; version=0.0.4; charset=utf-8",
                    .body = std::move(text)});
}

void answer_devices(const ExchangePtr& exchange) {
  InferenceService& service = exchange->state().service;
  const auto models = service.models();
  const auto decoders = exchange->state().generation.decoders().hosted();
  Json devices = Json::array();
  for (const auto& device : devices_of(exchange->state())) {
    devices.push_back(device_json(device, models, decoders));
  }
  const std::string_view strategy = strategy_name(service.fleet().strategy);
  exchange->answer(200, {{"strategy", strategy}, {"devices", std::move(devices)}});
}

void answer_decisions(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  const FleetView fleet = state.service.fleet();
  const auto models = state.service.models();
  const TimePoint now = state.clock.now();
  Json decisions = Json::array();
  for (const Decision& decision : fleet.decisions) {
    decisions.push_back(decision_json(decision, now, fleet.groups, models));
  }
  exchange->answer(200, {{"decisions", std::move(decisions)}});
}

void answer_config(const ExchangePtr& exchange) {
  exchange->answer({.status = 200,
                    .content_type = "application/json",
                    .body = exchange->state().hooks.config_json(exchange->is_admin)});
}

void answer_openapi(const ExchangePtr& exchange) {
  exchange->answer({.status = 200, .content_type = "application/yaml", .body = openapi_text()});
}

void answer_openapi_json(const ExchangePtr& exchange) {
  static const std::string json = yaml_as_json(openapi_text());
  exchange->answer({.status = 200, .content_type = "application/json", .body = json});
}

void answer_gpu_stats(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  exchange->answer(200, gpu_stats_with_tasks(snapshot_of(state), state.service.status(),
                                             state.service.fleet().groups));
}

}  // namespace muster
