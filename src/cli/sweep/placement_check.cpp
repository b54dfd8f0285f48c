// device_map and max_memory are accelerate's way to cut one model over several GPUs. muster runs a
// whole copy on each device, so `auto` means that, one device makes all maps the same, and a map
// that cuts is refused by name. A limit is checked twice: by the planner before anything is loaded,
// and against what the workers' own counters say they held.
#include "cli/sweep/placement_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "cli/device_choice.h"
#include "cli/machine_choice.h"
#include "hw/device_names.h"
#include "modelfile/model_catalogue.h"
#include "planner/plan/max_memory.h"
#include "planner/plan/plan.h"

namespace muster {
namespace {

using K = SweepKey;

// Words of made texts: lognormal with a median of 64 and a sigma of 0.5 exceeds 512 words once in
// sixty thousand, and a word is two tokens at most.
constexpr std::uint64_t kMadeTokens = 1'024;

// "1" is the device of that number, and "1:0" a slice of it; a name is itself.
bool names(std::string_view key, std::string_view device) {
  return device == key || device.substr(device.find(':') + 1) == key;
}

std::string names_of(const std::vector<Device>& devices) {
  std::vector<std::string> names;
  for (const auto& device : devices) names.push_back(device.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

// The tokens of a text are at most its bytes.
std::uint32_t context_of(const SweepPoint& point, const SweepFacts& facts, bool generates) {
  std::uint64_t tokens = facts.texts_hash.empty() ? kMadeTokens : facts.longest_text;
  if (point.has(K::SequenceLength)) tokens = 2 * point.count(K::SequenceLength);
  if (generates) tokens += point.count(K::MaxNewTokens);
  constexpr std::uint64_t kTokensMost = 1 << 20;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(tokens, 1, kTokensMost));
}

Workload workload_of(const SweepPoint& point, const SweepFacts& facts,
                     const ModelDescription& model) {
  const bool generates = facts.task == "generate" || facts.task == "completions";
  Workload workload;
  workload.task = generates ? PlanTask::Generate : PlanTask::Embed;
  workload.batch = static_cast<std::uint32_t>(point.count(K::BatchSize));
  workload.context = context_of(point, facts, generates);
  if (model.shape.length_max > 0) {
    workload.context = std::min(workload.context, model.shape.length_max);
  }
  if (point.at(K::TorchDtype) != "auto") workload.dtype = point.at(K::TorchDtype);
  return workload;
}

}  // namespace

Result<MemoryLimits> limits_of(std::string_view max_memory, const std::string& place,
                               const std::vector<std::string>& requested,
                               const std::vector<Device>& devices) {
  MemoryLimits limits;
  if (max_memory.empty()) return limits;
  for (const auto& entry : split(max_memory, ',')) {
    const auto equals = entry.find('=');
    const auto key = entry.substr(0, equals);
    const auto is_it = [&key](const std::string& device) { return names(key, device); };
    if (std::ranges::none_of(requested, is_it)) {
      return invalid_error(
          fmt::format("{}: no device {} in backend.device_ids, which are {}{}", place, key,
                      fmt::join(requested, ", "),
                      key == "cpu" || key == "disk" ? "; nothing is offloaded to it" : ""));
    }
    const auto bytes = parse_memory_size(entry.substr(equals + 1));
    if (!bytes) return Error{bytes.error().kind, place + ": " + bytes.error().message};
    std::vector<Device> meant;
    std::ranges::copy_if(devices, std::back_inserter(meant), is_it, &Device::name);
    if (meant.size() > 1) {
      return invalid_error(
          fmt::format("{}: {} is one of {}: write its whole name", place, key, names_of(meant)));
    }
    if (meant.empty()) continue;
    if (!limits.emplace(meant.front().name(), *bytes).second) {
      return invalid_error(fmt::format("{}: {} has two limits", place, meant.front().name()));
    }
  }
  return limits;
}

Result<PlacementCheck> PlacementCheck::create(const CommandContext& context,
                                              const SweepConfig& config, const SweepFacts& facts,
                                              std::vector<std::string> requested) {
  PlacementCheck made(context, config, facts, std::move(requested));
  const auto lists = named_devices(config);
  const bool wants_gpus =
      std::ranges::any_of(lists, [](const NamedDevices& one) { return may_name_gpus(one.list); });
  made.machine_ = MUSTER_TRY(find_machine(context.config, context.clock, wants_gpus));
  return made;
}

Status PlacementCheck::check_fit(const SweepPoint& point, const std::vector<Device>& devices,
                                 const MemoryLimits& limits) const {
  const auto found = MUSTER_TRY(find_and_describe(point.at(K::Model)));
  PlanRequest request;
  request.strategy = PlanStrategy::Replicate;
  request.may_offload = false;
  request.workload = workload_of(point, facts_, found.model);
  request.max_memory.assign(limits.begin(), limits.end());
  const auto plan =
      MUSTER_TRY(make_plan(found.model, machine_of(machine_, devices, "here"), request));
  const bool fits_all = plan.verdict.fit == Fit::OnDevices && plan.copies.size() == devices.size();
  if (fits_all) return Done{};
  const auto key = point.has(K::MaxMemory) ? K::MaxMemory : K::DeviceMap;
  return Error{
      ErrorKind::ResourceExhausted,
      fmt::format("{}: a whole copy of {} does not go onto each of {}: {}", config_.place_of(key),
                  point.at(K::Model), names_of(devices), plan.verdict.sentence)};
}

Result<MemoryLimits> PlacementCheck::check(const SweepPoint& point) const {
  const auto devices =
      MUSTER_TRY(chosen_devices(context_.config, point.at(K::DeviceIds), machine_.inventory));
  const auto& map = point.at(K::DeviceMap);
  if (!map.empty() && map != "auto" && devices.size() > 1) {
    return invalid_error(fmt::format(
        "{}: {} cuts one model over {} devices, and muster runs a whole copy on each: write auto, "
        "or one device",
        config_.place_of(K::DeviceMap), map, devices.size()));
  }
  auto limits = MUSTER_TRY(
      limits_of(point.at(K::MaxMemory), config_.place_of(K::MaxMemory), requested_, devices));
  if (!map.empty() || !limits.empty()) MUSTER_TRY(check_fit(point, devices, limits));
  return limits;
}

std::vector<std::string> memory_faults(const MemoryLimits& limits,
                                       const std::map<std::string, std::uint64_t>& held) {
  std::vector<std::string> faults;
  for (const auto& [device, most] : limits) {
    const auto found = held.find(device);
    if (found == held.end() || found->second <= most) continue;
    faults.push_back(fmt::format("{} held {}, and max_memory allows {}", device,
                                 human_bytes(found->second), human_bytes(most)));
  }
  return faults;
}

}  // namespace muster
