// Planning reads the files of models, so it has a thread of its own; requests that arrive during a
// round share its result. The thread gets copies and touches no state of the server. Its advice
// goes back to the loop, which adds problems and devices as they are at that moment. What an
// administrator wanted, such as a drained device, is no problem.

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "server/gpu_facts.h"
#include "server/handlers.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

Json problem(const std::string& subject, const std::string& text) {
  return {{"subject", subject}, {"problem", text}};
}

// Starting, draining and resting are what somebody wanted.
bool is_failing(GroupState state) {
  return state == GroupState::Quarantined || state == GroupState::Restarting ||
         state == GroupState::GivenUp;
}

void add_of_worker(const GroupStatus& device, const std::vector<ServedModelStatus>& models,
                   Json& problems) {
  if (is_failing(device.state)) {
    std::string text(group_state_name(device.state));
    if (!device.reason.empty()) text += ": " + device.reason;
    problems.push_back(problem(device.name, text));
  }
  for (const auto& model : models) {
    const auto hosted = device.models.find(model.id);
    if (hosted == device.models.end() || hosted->second.state != ModelState::Failed) continue;
    problems.push_back(problem(
        device.name, "the model " + model.name + " could not be loaded: " + hosted->second.reason));
  }
}

// Health is judged by telemetry alone; what is well or not known has no sentence.
void add_of_readings(const DeviceStatus& device, Json& problems) {
  if (!device.is_up) problems.push_back(problem(device.name, device.down_reason));
  for (const auto& finding : device.health) {
    if (finding.state == HealthState::Well || finding.sentence.empty()) continue;
    problems.push_back(problem(device.name, finding.sentence));
  }
}

Json problems_of(const ServerState& state, const TelemetrySnapshot& snapshot,
                 const std::vector<GroupStatus>& devices) {
  const auto models = state.service.models();
  Json problems = Json::array();
  for (const auto& device : devices) add_of_worker(device, models, problems);
  for (const auto& device : snapshot.devices) add_of_readings(device, problems);
  for (const auto& model : models) {
    if (model.state == ModelState::Failed) problems.push_back(problem(model.name, model.reason));
  }
  for (const auto& model : state.generation.models()) {
    if (model.state == ModelState::Failed) problems.push_back(problem(model.name, model.reason));
  }
  if (state.collector == nullptr) {
    problems.push_back(problem("server", "the devices are not watched: their health is not known"));
  }
  return problems;
}

struct ModelAdvice {
  ModelId id = 0;
  Json json;
};

// One model that cannot be planned must not hide the advice for the others: its fault takes the
// place of its advice.
std::vector<ModelAdvice> advise(const std::vector<ServedModelStatus>& models,
                                const ServerHooks& hooks) {
  std::vector<ModelAdvice> all;
  for (const auto& model : models) {
    const auto advice = hooks.recommendation_json(model);
    Json json = advice ? Json::parse(*advice) : Json{{"error", advice.error().message}};
    json["model"] = model.name;
    all.push_back({model.id, std::move(json)});
  }
  return all;
}

Json devices_with(ModelId model, const std::vector<GroupStatus>& devices) {
  Json names = Json::array();
  for (const auto& device : devices) {
    const auto hosted = device.models.find(model);
    const bool has_it = hosted != device.models.end() && hosted->second.state == ModelState::Ready;
    if (has_it) names.push_back(device.name);
  }
  return names;
}

// true: each model fits on a device here; null where one could not be planned.
Json meets_recommendations(const std::vector<ModelAdvice>& advice) {
  bool is_met = true;
  for (const auto& model : advice) {
    if (model.json.contains("error")) return nullptr;
    is_met = is_met && !model.json["recommended_device"].is_null();
  }
  return is_met;
}

Json answer_of(const ServerState& state, std::vector<ModelAdvice> advice) {
  const auto snapshot = snapshot_of(state);
  const auto devices = devices_of(state);
  const auto gpus = gpu_facts(snapshot, devices);
  Json names = Json::array();
  for (const auto& device : devices) names.push_back(device.name);
  Json answer{{"timestamp", gpus.timestamp},
              {"problems", problems_of(state, snapshot, devices)},
              {"current_setup",
               {{"devices", std::move(names)},
                {"gpu_count", gpus.ids.size()},
                {"available_gpus", gpus.available_ids},
                {"meets_recommendations", meets_recommendations(advice)}}},
              {"models", Json::array()}};
  for (auto& model : advice) {
    model.json["loaded_on"] = devices_with(model.id, devices);
    answer["models"].push_back(std::move(model.json));
  }
  return answer;
}

// What reading a model's files ran into names them.
Json without_places(Json answer) {
  for (auto& model : answer["models"]) {
    if (model.contains("error")) model["error"] = "its files cannot be planned with";
  }
  return answer;
}

}  // namespace

void answer_recommendations(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  state.awaiting_advice.push_back(exchange);
  if (state.awaiting_advice.size() > 1) return;        // the round under way answers this one too
  if (state.adviser.joinable()) state.adviser.join();  // it has ended: its answers were given
  state.adviser = std::jthread([exchange, models = state.service.models(), hooks = state.hooks] {
    auto advice = advise(models, hooks);
    exchange->state().loop.post([exchange, advice = std::move(advice)] {
      ServerState& now = exchange->state();
      const Json answer = answer_of(now, advice);
      for (const auto& one : std::exchange(now.awaiting_advice, {})) {
        one->answer(200, one->is_admin ? answer : without_places(answer));
      }
    });
  });
}

}  // namespace muster
