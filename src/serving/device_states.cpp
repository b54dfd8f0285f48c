// An operator drains and restarts a device, and waits until that is done: what runs there has to
// answer as one, whoever owns it.

#include "serving/device_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace muster {
namespace {

using Worker = ServedDecoderStatus::Device;
using Workers = std::vector<const Worker*>;

Workers workers_on(const std::string& device, const std::vector<ServedDecoderStatus>& decoders) {
  Workers found;
  for (const auto& decoder : decoders) {
    for (const auto& worker : decoder.devices) {
      if (worker.name == device) found.push_back(&worker);
    }
  }
  return found;
}

bool is_on_its_way(const Worker& worker) {
  return worker.state == GroupState::Starting || worker.state == GroupState::Restarting ||
         worker.state == GroupState::Draining;
}

const Worker* first_in(GroupState state, const Workers& workers) {
  const auto found = std::find_if(workers.begin(), workers.end(),
                                  [state](const Worker* worker) { return worker->state == state; });
  return found == workers.end() ? nullptr : *found;
}

void rest(GroupStatus& device, const Workers& workers) {
  const bool has_drained = std::all_of(workers.begin(), workers.end(), [](const Worker* worker) {
    return worker->state == GroupState::Drained;
  });
  if (!has_drained) device.state = GroupState::Draining;
}

// No model that embeds or ranks is on it: what it does it does for decoders.
void follow_decoders(GroupStatus& device, const Workers& workers) {
  constexpr std::array kFromBest{GroupState::Ready,    GroupState::Starting, GroupState::Restarting,
                                 GroupState::Draining, GroupState::GivenUp,  GroupState::Drained};
  for (const auto state : kFromBest) {
    const auto* const worker = first_in(state, workers);
    if (worker == nullptr) continue;
    device.state = state;
    device.reason = worker->reason;
    device.is_asked_for = device.is_asked_for || worker->is_asked_for;
    return;
  }
}

void add_workers(GroupStatus& device, const Workers& workers) {
  if (workers.empty()) return;
  if (device.is_to_rest) return rest(device, workers);
  const auto asked = std::find_if(workers.begin(), workers.end(), [](const Worker* worker) {
    return worker->is_asked_for && is_on_its_way(*worker);
  });
  if (asked != workers.end()) {
    const bool is_draining = (*asked)->state == GroupState::Draining;
    device.state = is_draining ? GroupState::Draining : GroupState::Restarting;
    device.reason = (*asked)->reason;
    device.is_asked_for = true;
  } else if (device.state == GroupState::Idle) {
    follow_decoders(device, workers);
  }
}

std::string missing_text(const std::string& model, bool waits_for_memory,
                         const std::string& reason) {
  return fmt::format("{} {}: {}", model, waits_for_memory ? "waits for memory" : "cannot be loaded",
                     reason);
}

Error load_error(const std::string& model, const std::string& device, const std::string& reason,
                 const std::optional<ErrorKind>& kind) {
  return {
      kind.value_or(ErrorKind::Unavailable),
      fmt::format("no device can load what is to be served: {}: {}: {}", model, device, reason)};
}

// A worker that has failed to load runs on and does not try again; where it is to end, or a new one
// starts, that one will.
std::optional<Error> hopeless_error_of(const ServedModelStatus& model,
                                       const std::vector<GroupStatus>& devices) {
  std::optional<Error> first;
  for (const auto& device : devices) {
    const auto here = device.models.find(model.id);
    if (here == device.models.end()) continue;
    const bool is_settled =
        device.state == GroupState::Ready || device.state == GroupState::GivenUp;
    const bool is_hopeless = here->second.state == ModelState::Failed &&
                             !here->second.waits_for_memory && is_settled && !device.is_to_rest;
    if (!is_hopeless) return std::nullopt;
    if (!first) {
      first = load_error(model.name, device.name, here->second.reason, here->second.failure_kind);
    }
  }
  return first;
}

std::optional<Error> hopeless_error_of(const ServedDecoderStatus& decoder) {
  const bool is_hopeless =
      !decoder.devices.empty() &&
      std::all_of(decoder.devices.begin(), decoder.devices.end(), [](const Worker& worker) {
        return worker.state == GroupState::GivenUp || !worker.start_failure.empty();
      });
  if (!is_hopeless) return std::nullopt;
  // Of damage only where all say so: else another device may do.
  const auto other =
      std::find_if(decoder.devices.begin(), decoder.devices.end(),
                   [](const Worker& worker) { return worker.failure_kind != ErrorKind::Corrupt; });
  const auto& worker = other != decoder.devices.end() ? *other : decoder.devices.front();
  return load_error(decoder.name, worker.name, worker.reason, worker.failure_kind);
}

}  // namespace

std::optional<Error> hopeless_error(const std::vector<GroupStatus>& devices,
                                    const std::vector<ServedModelStatus>& models,
                                    const std::vector<ServedDecoderStatus>& decoders) {
  std::optional<Error> first;
  for (const auto& model : models) {
    auto error = hopeless_error_of(model, devices);
    if (!error) return std::nullopt;
    if (!first) first = std::move(error);
  }
  for (const auto& decoder : decoders) {
    auto error = hopeless_error_of(decoder);
    if (!error) return std::nullopt;
    if (!first) first = std::move(error);
  }
  return first;
}

bool is_loading(const GroupStatus& device) {
  if (device.is_to_rest || !device.pid()) return false;
  return std::any_of(device.models.begin(), device.models.end(), [](const auto& entry) {
    const auto& model = entry.second;
    const bool is_coming = model.state == ModelState::Loading || model.state == ModelState::Absent;
    return is_coming && !model.waits_for_memory;
  });
}

std::string missing_models(const GroupStatus& device, const std::vector<ServedModelStatus>& models,
                           const std::vector<ServedDecoderStatus>& decoders) {
  std::vector<std::string> missing;
  for (const auto& model : models) {
    const auto here = device.models.find(model.id);
    if (here == device.models.end()) continue;
    const auto& status = here->second;
    const bool is_missing = status.waits_for_memory || status.state == ModelState::Failed;
    if (is_missing) {
      missing.push_back(missing_text(model.name, status.waits_for_memory, status.reason));
    }
  }
  for (const auto& decoder : decoders) {
    if (decoder.is_leaving) continue;
    for (const auto& worker : decoder.devices) {
      // Restarting where the model is failed: each new worker fails, and the next one comes later.
      const bool fails_again =
          decoder.state == ModelState::Failed && worker.state == GroupState::Restarting;
      const bool is_missing =
          worker.waits_for_memory || worker.state == GroupState::GivenUp || fails_again;
      if (worker.name == device.name && is_missing) {
        missing.push_back(missing_text(decoder.name, worker.waits_for_memory, worker.reason));
      }
    }
  }
  return fmt::format("{}", fmt::join(missing, "; "));
}

std::vector<GroupStatus> with_decoders(std::vector<GroupStatus> devices,
                                       const std::vector<ServedModelStatus>& models,
                                       const std::vector<ServedDecoderStatus>& decoders) {
  for (auto& device : devices) {
    add_workers(device, workers_on(device.name, decoders));
    if (device.state != GroupState::Ready) continue;
    if (auto missing = missing_models(device, models, decoders); !missing.empty()) {
      device.reason = std::move(missing);
    }
  }
  return devices;
}

}  // namespace muster
