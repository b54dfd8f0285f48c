// The answers start from the JSON that the views of telemetry write and add what only the server
// knows, so a reading has the same name and the same rounding wherever it is shown. Only whole GPUs
// count as GPUs; a MIG slice has a parent and is left out. A GPU whose memory is not known is not
// called taken.

#include "server/gpu_facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "telemetry/gpu_stats.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

bool is_whole_gpu(const DeviceStatus& status) {
  return status.identity.device.kind != DeviceKind::Cpu && !status.identity.parent;
}

const GroupStatus* worker_of(std::uint32_t gpu, const std::vector<GroupStatus>& devices) {
  const auto is_it = [gpu](const MemberStatus& member) {
    const auto& device = member.device;
    return device.kind != DeviceKind::Cpu && device.index == gpu && !device.slice;
  };
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const GroupStatus& group) {
    return std::any_of(group.members.begin(), group.members.end(), is_it);
  });
  return found == devices.end() ? nullptr : &*found;
}

// The share above which document's clients call a GPU taken.
constexpr double kTakenShare = 0.9;

bool is_available(const DeviceStatus& status, const GroupStatus* worker) {
  if (!status.is_up) return false;
  const bool may_work =
      worker == nullptr || worker->state == GroupState::Ready || worker->state == GroupState::Idle;
  if (!may_work) return false;
  const auto size = status.readings.get(Reading::GpuMemorySize);
  const auto used = status.readings.get(Reading::GpuMemoryUsed);
  return !size || !used || *used < kTakenShare * *size;
}

}  // namespace

Json gpu_stats_with_tasks(const TelemetrySnapshot& snapshot, const ServiceStatus& service,
                          const std::vector<GroupStatus>& devices) {
  Json stats = Json::parse(gpu_stats_json(snapshot));
  for (Json& gpu : stats["devices"]) {
    const auto* worker = worker_of(gpu["index"].get<std::uint32_t>(), devices);
    gpu["active_tasks"] = worker != nullptr ? Json(worker->in_flight_texts) : Json(nullptr);
    gpu["completed_tasks"] = worker != nullptr ? Json(worker->text_count) : Json(nullptr);
  }
  std::uint64_t batches = 0;
  std::uint64_t completed = 0;
  double engine_seconds = 0;
  for (const auto& device : devices) {
    batches += device.batch_count;
    completed += device.text_count;
    engine_seconds += device.engine_seconds;
  }
  stats["total_tasks_completed"] = completed;
  stats["total_tasks_pending"] = service.waiting_call_count;
  stats["avg_time_per_batch_ms"] =
      batches == 0 ? Json(nullptr) : Json(engine_seconds * 1000 / static_cast<double>(batches));
  return stats;
}

GpusSeen gpu_facts(const TelemetrySnapshot& snapshot, const std::vector<GroupStatus>& devices) {
  GpusSeen facts;
  facts.timestamp = Json::parse(gpu_stats_json(snapshot))["timestamp"].get<std::string>();
  for (const auto& status : snapshot.devices) {
    if (!is_whole_gpu(status)) continue;
    const std::uint32_t index = status.identity.device.index;
    facts.ids.push_back(index);
    if (status.identity.device.kind == DeviceKind::Cuda && status.is_up) facts.has_cuda = true;
    if (is_available(status, worker_of(index, devices))) facts.available_ids.push_back(index);
  }
  return facts;
}

Json gpu_info(const TelemetrySnapshot& snapshot) { return Json::parse(gpu_info_json(snapshot)); }

// Over the GPUs that report the field, so one that is silent does not count as 0.
Json mean_of(const Json& info, const std::string& field) {
  double sum = 0;
  std::uint64_t count = 0;
  for (const auto& [key, gpu] : info.items()) {
    if (!gpu[field].is_number()) continue;
    sum += gpu[field].get<double>();
    ++count;
  }
  return count == 0 ? Json(nullptr) : Json(sum / static_cast<double>(count));
}

Json field_of(const Json& info, const std::string& field) {
  Json values = Json::object();
  for (const auto& [key, gpu] : info.items()) values[key] = gpu[field];
  return values;
}

}  // namespace muster
