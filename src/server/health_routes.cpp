// Three questions that differ in cost. /livez is answered by the loop alone; /readyz asks whether
// calls are taken and all models of the start are there; /health sends a canary to every device.
// Requests for /health that arrive during a round share its answer, so polling by many clients
// never adds work. A drained device is meant to rest and counts neither for nor against, but one
// device at least must be well. What loads for the first time is no fault yet. A decoder has no
// canary: its worker is well when it has loaded. A probe needs no key: without one that may read it
// learns the verdict alone, and of the last round while that is new, so that nobody without a key
// keeps the devices at it.

#include <nlohmann/json.hpp>

#include "base/wall_clock.h"
#include "server/access.h"
#include "server/handlers.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// Without keys everybody may read, as anywhere else.
bool may_read(Exchange& exchange) {
  const auto& keys = exchange.state().keys;
  if (keys == nullptr) return true;
  auto verdict = check_key(*keys, exchange.request, RouteScope::Read, unix_seconds());
  exchange.caller_name = std::move(verdict.caller.name);
  return !verdict.refusal;
}

// A drain goes before all else: while it lasts, the states of models explain nothing. Names of
// models, and reasons, which quote files, are for those who may read.
std::string why_unready(const ServerState& state, bool shows_models) {
  if (state.service.status().is_draining) return "the server is shutting down";
  std::string reasons;
  bool has_models = false;
  const auto add = [&](const auto& models) {
    has_models = has_models || !models.empty();
    for (const auto& model : models) {
      if (model.state == ModelState::Ready) continue;
      if (!reasons.empty()) reasons += "; ";
      reasons += model.name + (model.reason.empty() ? " is loading" : ": " + model.reason);
    }
  };
  add(state.service.models());
  add(state.generation.models());
  if (reasons.empty()) return has_models ? "no device is ready" : "no model is served";
  return shows_models ? reasons : "a model is not ready";
}

HttpResponse later(int status, const Json& body) {
  HttpResponse response{
      .status = status, .content_type = "application/json", .body = json_text(body)};
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

// missing: the models that are to be on the device and do not work there.
Json worker_json(const GroupStatus& device, const CanaryResult* result,
                 const std::string& missing) {
  Json json{{"device", device.name}, {"state", group_state_name(device.state)}};
  const bool is_meant_to_rest = device.state == GroupState::Drained;
  const bool is_right = result != nullptr && result->is_well;
  const bool is_well = is_right && missing.empty();
  json["is_well"] = is_meant_to_rest ? Json(nullptr) : Json(is_well);
  std::string reason = result != nullptr && !is_right ? result->reason : device.reason;
  if (is_right) reason = missing;
  if (!is_meant_to_rest && !is_well) {
    json["reason"] = reason.empty() ? "it has no worker that answers" : reason;
  }
  if (result != nullptr && result->seconds) json["canary_ms"] = *result->seconds * 1000;
  return json;
}

Json decoder_worker_json(const std::string& model, const ServedDecoderStatus::Device& device) {
  const bool is_meant_to_rest = device.state == GroupState::Drained;
  const bool is_well = device.state == GroupState::Ready;
  Json json{{"device", device.name},
            {"model", model},
            {"state", group_state_name(device.state)},
            {"is_well", is_meant_to_rest ? Json(nullptr) : Json(is_well)}};
  if (!is_well && !is_meant_to_rest) {
    json["reason"] = device.reason.empty() ? "it is loading the model" : device.reason;
  }
  return json;
}

constexpr Duration kVerdictAge = std::chrono::seconds(1);

Json verdict_json(const HealthVerdict& verdict) { return {{"status", verdict.word}}; }

// All that should work does: 200. Anything else is 503, with what is wrong, also where a device
// answers for one model and cannot load another. An idle device has no worker that could answer;
// what is unloaded is nobody's any more.
HealthVerdict judge(const ServerState& state, const std::vector<CanaryResult>& results,
                    Json& workers) {
  const auto devices = state.service.fleet().groups;
  const auto models = state.service.models();
  std::size_t resting_count = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].state == GroupState::Idle) continue;
    const CanaryResult* mine = nullptr;
    for (const auto& result : results) {
      if (result.group == i) mine = &result;
    }
    // Decoders have workers of their own, below.
    workers.push_back(worker_json(devices[i], mine, missing_models(devices[i], models, {})));
    resting_count += devices[i].state == GroupState::Drained ? 1 : 0;
  }
  for (const auto& model : state.generation.models()) {
    for (const auto& device : model.devices) {
      workers.push_back(decoder_worker_json(model.name, device));
      resting_count += device.state == GroupState::Drained ? 1 : 0;
    }
  }
  std::size_t well_count = 0;
  std::size_t starting_count = 0;
  const auto starting = group_state_name(GroupState::Starting);
  for (const auto& worker : workers) {
    if (worker["is_well"] == Json(true)) ++well_count;
    if (worker["is_well"] == Json(false) && worker["state"] == starting) ++starting_count;
  }
  const bool is_well = well_count > 0 && well_count + resting_count == workers.size();
  const bool is_starting =
      starting_count > 0 && well_count + starting_count + resting_count == workers.size();
  return {.status = is_well ? 200 : 503,
          .word = is_well       ? "ok"
                  : is_starting ? "starting"
                                : (well_count > 0 ? "degraded" : "failed")};
}

void answer_round(ServerState& state, const std::vector<CanaryResult>& results) {
  Json workers = Json::array();
  auto verdict = judge(state, results, workers);
  verdict.reached = state.clock.now();
  state.last_health = verdict;
  for (const auto& [exchange, shows_workers] : std::exchange(state.awaiting_health, {})) {
    auto json = verdict_json(verdict);
    if (shows_workers) json["workers"] = workers;
    exchange->answer(later(verdict.status, json));
  }
}

}  // namespace

void answer_livez(const ExchangePtr& exchange) { exchange->answer(200, {{"status", "ok"}}); }

void answer_readyz(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  if (is_ready(state)) return exchange->answer(200, {{"status", "ready"}});
  exchange->answer(
      later(503, {{"status", "unready"}, {"reason", why_unready(state, may_read(*exchange))}}));
}

void answer_health(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  const bool shows_workers = may_read(*exchange);
  const auto& last = state.last_health;
  if (!shows_workers && last && state.clock.now() - last->reached < kVerdictAge) {
    return exchange->answer(later(last->status, verdict_json(*last)));
  }
  state.awaiting_health.push_back({exchange, shows_workers});
  if (state.awaiting_health.size() > 1) return;  // the round under way answers this one too
  state.service.fleet_admin().check(state.options.canary_limit,
                                    [alive = exchange](const std::vector<CanaryResult>& results) {
                                      answer_round(alive->state(), results);
                                    });
}

}  // namespace muster
