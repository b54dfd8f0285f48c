// What an administrator changes. Devices are named by GPU index and become places in the fleet's
// list, sorted and without duplicates, so a group that holds two of the named GPUs is restarted
// once. A product test takes seconds and has a thread of its own, one test at a time; its result is
// posted back to the loop, which alone touches the state. Every change is logged together with who
// asked for it.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/build_info.h"
#include "base/text.h"
#include "doctor/compute_product.h"
#include "server/call_fields.h"
#include "server/gpu_facts.h"
#include "server/handlers.h"
#include "server/json_body.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::optional<std::vector<std::uint32_t>>;  // nullopt: all

// ---- devices by their ids ----

ApiStatus read_ids(JsonValue& value, Ids& ids) {
  constexpr std::size_t kIdsMost = 4096;
  simdjson::ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) {
    return wrong_type(value, "gpu_ids", "an array of integers");
  }
  ids.emplace();
  for (auto item : array) {
    JsonValue element;
    if (const auto fault = item.get(element)) return broken_json(fault);
    if (ids->size() >= kIdsMost) return list_too_long("gpu_ids", kIdsMost);
    ids->push_back(
        static_cast<std::uint32_t>(MUSTER_TRY(read_integer(element, "gpu_ids", 0, UINT32_MAX))));
  }
  if (ids->empty()) return empty_list("gpu_ids");
  return Done{};
}

// Which of the server's devices these are. Errors: 404 for one that the server does not have.
ApiResult<std::vector<std::size_t>> chosen(const std::vector<GroupStatus>& devices,
                                           const Ids& ids) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; !ids && i < devices.size(); ++i) places.push_back(i);
  for (const std::uint32_t id : ids.value_or(std::vector<std::uint32_t>())) {
    const auto is_it = [id](const MemberStatus& member) {
      return member.device.kind != DeviceKind::Cpu && member.device.index == id;
    };
    const auto found = std::find_if(devices.begin(), devices.end(), [&](const GroupStatus& group) {
      return std::any_of(group.members.begin(), group.members.end(), is_it);
    });
    if (found == devices.end()) {
      ApiError error = api_error(404, "The server has no GPU " + std::to_string(id));
      error.param = "gpu_ids";
      return error;
    }
    places.push_back(static_cast<std::size_t>(found - devices.begin()));
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// ---- POST /multigpu/gpu/test ----

Json outcome_json(const ComputeOutcome& outcome) {
  Json speeds = Json::array();
  bool is_right = !outcome.error;
  for (const ProductSpeed& speed : outcome.speeds) {
    is_right = is_right && speed.wrong_row_count == 0;
    speeds.push_back({{"precision", precision_name(speed.precision)},
                      {"tflops", speed.flops_per_second / 1e12},
                      {"rounds", speed.rounds},
                      {"wrong_rows", speed.wrong_row_count}});
  }
  Json json{{"status", is_right ? "ok" : "failed"}, {"tensor_operation", "matrix product"}};
  if (outcome.error) json["reason"] = outcome.error->message;
  json["products"] = std::move(speeds);
  return json;
}

// GPUs by the keys of gpu_info, other devices by their names.
std::string outcome_key(const Device& device) {
  const bool is_gpu = device.kind != DeviceKind::Cpu && !device.slice;
  return is_gpu ? "gpu_" + std::to_string(device.index) : device.name();
}

Json test(const std::vector<Device>& devices, const ComputeTestOptions& options,
          const Clock& clock) {
  Json results = Json::object();
  for (const ComputeOutcome& outcome : test_devices(devices, options, clock)) {
    results[outcome_key(outcome.device)] = outcome_json(outcome);
  }
  return results;
}

// ---- a device, with all that runs on it ----

/// What is done to a device is done to all that runs on it: the worker group that embeds and ranks,
/// and the workers of decoders.
struct DeviceChange {
  std::string_view verb;
  void (FleetAdmin::*of_group)(std::size_t);
  void (ServingDecoders::*of_decoders)(std::size_t);
};

constexpr DeviceChange kDrain{"drain", &FleetAdmin::drain, &ServingDecoders::drain};
constexpr DeviceChange kResume{"resume", &FleetAdmin::resume, &ServingDecoders::resume};
constexpr DeviceChange kRestart{"restart", &FleetAdmin::restart, &ServingDecoders::restart};

void apply(ServerState& state, const DeviceChange& change, std::size_t place) {
  (state.service.fleet_admin().*change.of_group)(place);
  (state.generation.decoders().*change.of_decoders)(place);
}

// ---- POST /multigpu/resources/manage ----

// Workers whose batches have been made smaller after an out-of-memory start anew, with whole ones;
// those of decoders have no batches.
Json optimize(ServerState& state, const std::vector<GroupStatus>& devices,
              const std::vector<std::size_t>& places) {
  Json restarted = Json::array();
  for (const std::size_t place : places) {
    const GroupStatus& device = devices[place];
    if (device.state != GroupState::Ready || device.token_budget >= state.options.batch_tokens) {
      continue;
    }
    state.service.fleet_admin().restart(place);
    restarted.push_back(device.name);
  }
  return {{"restarted", std::move(restarted)}};
}

// The cache is emptied in any case. Restarting workers frees device memory but interrupts them, so
// it happens only to devices that the request names.
Json clean_up(ServerState& state, const std::vector<GroupStatus>& devices,
              const std::vector<std::size_t>& places, bool names_devices) {
  const CacheStatus before = state.service.status().cache;
  state.service.clear_cache();
  Json restarted = Json::array();
  for (const std::size_t place : places) {
    if (!names_devices || devices[place].state != GroupState::Ready) continue;
    apply(state, kRestart, place);
    restarted.push_back(devices[place].name);
  }
  return {{"cache_entries_removed", before.entry_count},
          {"cache_bytes_freed", before.size},
          {"restarted", std::move(restarted)}};
}

// ---- POST /v1/admin/… ----

void change_device(const ExchangePtr& exchange, const DeviceChange& change) {
  std::string name;
  const std::vector<BodyField> fields{{"device", [&](JsonValue& value) -> ApiStatus {
                                         name =
                                             MUSTER_TRY(read_text(value, "device", kNameBytesMost));
                                         return Done{};
                                       }}};
  if (const auto read = read_body(std::move(exchange->request.body), fields); !read) {
    return exchange->refuse(read.error());
  }
  if (name.empty()) return exchange->refuse(missing_field("device"));
  ServerState& state = exchange->state();
  std::vector<std::string> names;
  for (const auto& device : state.service.fleet().groups) names.push_back(device.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    const auto nearest = nearest_name(name, names);
    ApiError error = api_error(404, "The server has no device '" + name + "'" +
                                        (nearest ? "; did you mean '" + *nearest + "'?" : ""));
    error.param = "device";
    return exchange->refuse(error);
  }
  const auto place = static_cast<std::size_t>(found - names.begin());
  apply(state, change, place);
  exchange->log_event(name + ": " + std::string(change.verb));
  exchange->answer(200,
                   {{"device", name}, {"state", group_state_name(devices_of(state)[place].state)}});
}

}  // namespace

void test_gpus(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  Ids ids;
  const std::vector<BodyField> fields{
      {"gpu_ids", [&](JsonValue& value) { return read_ids(value, ids); }}};
  if (!exchange->request.body.empty()) {
    const auto read = read_body(std::move(exchange->request.body), fields);
    if (!read) return exchange->refuse(read.error());
  }
  const auto all = state.service.fleet().groups;
  auto places = chosen(all, ids);
  if (!places) return exchange->refuse(places.error());
  if (state.is_testing) {
    ApiError busy = api_error(429, "A test is under way; there is one at a time");
    busy.retry_after = std::chrono::seconds(1);
    return exchange->refuse(busy);
  }
  if (state.tester.joinable()) state.tester.join();  // it has ended: its answer was given
  std::vector<Device> devices;
  for (const std::size_t place : *places) {
    for (const auto& member : all[place].members) devices.push_back(member.device);
  }
  ComputeTestOptions options;
  options.worker_program = state.options.worker_program;
  options.torch_root = state.options.torch_root;
  options.build = build_name();
  options.limit = std::chrono::seconds(30);  // torch is warm here, and a shutdown waits for this
  exchange->log_event("a matrix product on " + std::to_string(devices.size()) + " devices");
  state.is_testing = true;
  state.tester = std::jthread([exchange, devices, options, &state] {
    const Json results = test(devices, options, state.clock);
    state.loop.post([exchange, results] {
      exchange->state().is_testing = false;
      exchange->answer(200, results);
    });
  });
}

void manage_resources(const ExchangePtr& exchange) {
  ServerState& state = exchange->state();
  std::string action;
  Ids ids;
  const std::vector<BodyField> fields{
      {"action",
       [&](JsonValue& value) -> ApiStatus {
         action = MUSTER_TRY(read_text(value, "action", kNameBytesMost));
         return Done{};
       }},
      {"gpu_ids", [&](JsonValue& value) { return read_ids(value, ids); }}};
  if (const auto read = read_body(std::move(exchange->request.body), fields); !read) {
    return exchange->refuse(read.error());
  }
  const auto devices = devices_of(state);
  auto places = chosen(devices, ids);
  if (!places) return exchange->refuse(places.error());
  Json details;
  if (action == "cleanup") {
    details = clean_up(state, devices, *places, ids.has_value());
  } else if (action == "monitor") {
    details = gpu_info(snapshot_of(state));
  } else if (action == "optimize") {
    details = optimize(state, devices, *places);
  } else if (action.empty()) {
    return exchange->refuse(missing_field("action"));
  } else {
    return exchange->refuse(
        wrong_field("action", "invalid_value",
                    "Invalid 'action': expected 'cleanup', 'monitor' or 'optimize'."));
  }
  if (action != "monitor") exchange->log_event("resources: " + action);
  exchange->answer(200, {{"success", true}, {"action", action}, {"details", std::move(details)}});
}

void drain_device(const ExchangePtr& exchange) { change_device(exchange, kDrain); }
void resume_device(const ExchangePtr& exchange) { change_device(exchange, kResume); }
void restart_device(const ExchangePtr& exchange) { change_device(exchange, kRestart); }

}  // namespace muster
