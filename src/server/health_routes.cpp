// Three questions that differ in cost. /livez is answered by the loop alone; /readyz asks whether
// calls are taken; /health sends a canary to every device. Requests for /health that arrive during
// a round share its answer, so polling by many clients never adds work. A drained device is meant
// to rest and counts neither for nor against, but one device at least must be well.

#include <nlohmann/json.hpp>

#include "server/handlers.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// A drain goes before all else: while it lasts, the states of models explain nothing.
std::string why_unready(const ServerState& state) {
  const InferenceService& service = state.service;
  if (service.status().is_draining) return "the server is shutting down";
  std::string reason;
  for (const auto& model : service.models()) {
    if (model.state == ModelState::Ready) continue;
    if (!reason.empty()) reason += "; ";
    reason += model.name + (model.reason.empty() ? " is loading" : ": " + model.reason);
  }
  if (state.generation != nullptr) {
    for (const auto& model : state.generation->models()) {
      if (model.state == ModelState::Ready) continue;
      if (!reason.empty()) reason += "; ";
      reason += model.name + (model.reason.empty() ? " is loading" : ": " + model.reason);
    }
  }
  return reason.empty() ? "no device is ready" : reason;
}

HttpResponse later(int status, const Json& body) {
  HttpResponse response{
      .status = status, .content_type = "application/json", .body = json_text(body)};
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

Json worker_json(const GroupStatus& device, const CanaryResult* result) {
  Json json{{"device", device.name}, {"state", group_state_name(device.state)}};
  const bool is_meant_to_rest = device.state == GroupState::Drained;
  const bool is_well = result != nullptr && result->is_well;
  json["is_well"] = is_meant_to_rest ? Json(nullptr) : Json(is_well);
  std::string reason = result != nullptr && !is_well ? result->reason : device.reason;
  if (!is_meant_to_rest && !is_well) {
    json["reason"] = reason.empty() ? "it has no worker that answers" : reason;
  }
  if (result != nullptr && result->seconds) json["canary_ms"] = *result->seconds * 1000;
  return json;
}

Json decoder_worker_json(const std::string& model, const ServedDecoderStatus::Device& device) {
  Json json{{"device", device.name},
            {"model", model},
            {"state", device.is_ready ? "ready" : "starting"},
            {"is_well", device.is_ready}};
  if (!device.is_ready) {
    json["reason"] = device.reason.empty() ? "it is loading the model" : device.reason;
  }
  return json;
}

// All that should work does: 200. Anything else is 503, with what is wrong. Devices without a model
// of the canary's kind have nothing to answer where the server only generates.
HttpResponse health_response(const ServerState& state, const std::vector<CanaryResult>& results) {
  auto devices = state.service.fleet().groups;
  if (state.generation != nullptr && state.service.models().empty()) devices.clear();
  Json workers = Json::array();
  std::size_t worker_count = devices.size();
  std::size_t well_count = 0;
  std::size_t resting_count = 0;
  if (state.generation != nullptr) {
    for (const auto& model : state.generation->models()) {
      for (const auto& device : model.devices) {
        ++worker_count;
        well_count += device.is_ready ? 1 : 0;
        workers.push_back(decoder_worker_json(model.name, device));
      }
    }
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const CanaryResult* mine = nullptr;
    for (const auto& result : results) {
      if (result.group == i) mine = &result;
    }
    workers.push_back(worker_json(devices[i], mine));
    resting_count += devices[i].state == GroupState::Drained ? 1 : 0;
    well_count += workers.back()["is_well"] == Json(true) ? 1 : 0;
  }
  const bool is_well = well_count > 0 && well_count + resting_count == worker_count;
  return later(is_well ? 200 : 503,
               {{"status", is_well ? "ok" : (well_count > 0 ? "degraded" : "failed")},
                {"workers", std::move(workers)}});
}

}  // namespace

void answer_livez(const ExchangePtr& exchange) { exchange->answer(200, {{"status", "ok"}}); }

void answer_readyz(const ExchangePtr& exchange) {
  const ServerState& state = exchange->state();
  if (is_ready(state)) return exchange->answer(200, {{"status", "ready"}});
  exchange->answer(later(503, {{"status", "unready"}, {"reason", why_unready(state)}}));
}

void answer_health(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  state.awaiting_health.push_back(exchange);
  if (state.awaiting_health.size() > 1) return;  // the round under way answers this one too
  state.service.fleet_admin().check(state.options.canary_limit,
                                    [alive = exchange](const std::vector<CanaryResult>& results) {
                                      ServerState& now = alive->state();
                                      const auto waiting = std::exchange(now.awaiting_health, {});
                                      for (const auto& one : waiting)
                                        one->answer(health_response(now, results));
                                    });
}

}  // namespace muster
