// What is not known is null instead of missing, so all devices have the same fields and a client
// needs no test for presence. A decision shows its age, since its time belongs to the server's own
// clock and is no date. It may outlive the device or the model that it names: the device is null
// then, and the model is its number.

#include "server/fleet_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_values.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json kind_or_null(const std::optional<ErrorKind>& kind) {
  return kind ? Json(error_kind_name(*kind)) : Json(nullptr);
}

// A model that is being forgotten has no name any more: its number.
std::string model_name(ModelId id, const std::vector<ServedModelStatus>& models) {
  const auto found =
      std::find_if(models.begin(), models.end(), [&](const auto& model) { return model.id == id; });
  return found == models.end() ? std::to_string(id) : found->name;
}

Json canary_json(const std::optional<CanaryResult>& canary) {
  if (!canary) return nullptr;
  return {{"is_well", canary->is_well},
          {"reason", text_or_null(canary->reason)},
          {"seconds", or_null(canary->seconds)}};
}

Json hosted_json(const GroupStatus& device, const std::vector<ServedModelStatus>& models) {
  Json hosted = Json::array();
  for (const auto& [id, status] : device.models) {
    hosted.push_back({{"name", model_name(id, models)},
                      {"state", model_state_name(status.state)},
                      {"reason", text_or_null(status.reason)},
                      {"failure_kind", kind_or_null(status.failure_kind)},
                      {"waits_for_memory", status.waits_for_memory},
                      {"weights_bytes", status.weights_bytes},
                      {"load_peak_bytes", status.load_peak_bytes}});
  }
  return hosted;
}

// Each has a worker of its own. One that was unloaded is there until its replies have ended.
Json decoders_json(const std::string& device, const std::vector<ServedDecoderStatus>& decoders) {
  Json all = Json::array();
  for (const auto& decoder : decoders) {
    for (const auto& worker : decoder.devices) {
      if (worker.name != device) continue;
      all.push_back({{"name", decoder.name},
                     {"state", group_state_name(worker.state)},
                     {"reason", text_or_null(worker.reason)},
                     {"failure_kind", kind_or_null(worker.failure_kind)},
                     {"waits_for_memory", worker.waits_for_memory},
                     {"is_unloading", decoder.is_leaving},
                     {"pid", or_null(worker.pid)},
                     {"in_flight_replies", worker.running_count},
                     {"restart_count", worker.restart_count},
                     {"cache_use", worker.cache_use},
                     {"preemption_count", worker.preemption_count}});
    }
  }
  return all;
}

}  // namespace

Json device_json(const GroupStatus& device, const std::vector<ServedModelStatus>& models,
                 const std::vector<ServedDecoderStatus>& decoders) {
  return {{"name", device.name},
          {"kind", device_kind_name(device.device().kind)},
          {"model", device.device().model},
          {"uuid", or_null(device.device().uuid)},
          {"memory_total_bytes", or_null(device.device().memory_total_bytes)},
          {"state", group_state_name(device.state)},
          {"reason", text_or_null(device.reason)},
          {"pid", or_null(device.pid())},
          {"engine_class", text_or_null(device.engine_class)},
          {"lane_count", device.lane_count},
          {"models", hosted_json(device, models)},
          {"decoders", decoders_json(device.name, decoders)},
          {"text_count", device.text_count},
          {"token_count", device.token_count},
          {"batch_count", device.batch_count},
          {"failed_batch_count", device.failed_batch_count},
          {"engine_seconds", device.engine_seconds},
          {"ready_seconds", device.ready_seconds},
          {"tokens_per_second", or_null(device.tokens_per_second)},
          {"in_flight_texts", device.in_flight_texts},
          {"in_flight_tokens", device.in_flight_tokens},
          {"batch_tokens_limit", device.token_budget},
          {"activation_peak_bytes", device.activation_peak_bytes},
          {"restart_count", device.restart_count},
          {"quarantine_count", device.quarantine_count},
          {"last_canary", canary_json(device.last_canary)},
          {"last_words", text_or_null(device.last_words)}};
}

Json decision_json(const Decision& decision, TimePoint now, const std::vector<GroupStatus>& devices,
                   const std::vector<ServedModelStatus>& models) {
  const bool is_known = decision.device < devices.size();
  return {{"age_seconds", seconds(now - decision.at)},
          {"device", is_known ? Json(devices[decision.device].name) : Json(nullptr)},
          {"model", model_name(decision.model, models)},
          {"batch", decision.batch == 0 ? Json(nullptr) : Json(decision.batch)},
          {"text_count", decision.text_count},
          {"token_count", decision.token_count},
          {"reason", decision.reason}};
}

}  // namespace muster
