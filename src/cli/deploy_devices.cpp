// Which devices a deployment gets. A plan's devices go through the same parser as those of
// --devices.

#include "cli/deploy_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/deploy_plan.h"
#include "deploy/server_api.h"
#include "hw/device_names.h"

namespace muster {
namespace {

Error invalid(std::string message) { return {ErrorKind::InvalidArgument, std::move(message)}; }

// The GPUs that are not lost, with the memory that a new program can have; all of it where the
// driver does not tell.
std::vector<DeviceCandidate> candidates_of(const Inventory& inventory) {
  std::vector<DeviceCandidate> candidates;
  for (const auto& gpu : inventory.gpus) {
    if (!gpu.lost_reason.empty()) continue;
    candidates.push_back(
        {gpu.name(), gpu.memory_free_bytes.value_or(gpu.memory_total_bytes.value_or(0))});
  }
  return candidates;
}

Result<std::vector<std::string>> select_devices(const ContainerHost& host,
                                                const Result<ModelFacts>& facts,
                                                DeployOptions& options) {
  if (!facts) {
    return Error{facts.error().kind,
                 fmt::format("--auto-select must know how large the model is: {}; name the devices "
                             "with --devices instead",
                             facts.error().message)};
  }
  const auto candidates = candidates_of(host.inventory);
  const auto lost = lost_gpus_text(host.inventory);
  if (candidates.empty()) {
    const auto reason =
        lost.empty() ? host.inventory.gpu_absent_reason.value_or("none was found") : lost;
    return Error{
        ErrorKind::Unavailable,
        fmt::format("no GPU to choose from: {}; --devices none runs on the processor", reason)};
  }
  auto words = MUSTER_TRY(
      choose_devices(candidates, facts->weight_bytes, options.request.api, options.request.heads));
  if (!lost.empty()) options.notes.push_back(lost);
  options.notes.push_back(fmt::format(
      "chose {}: the fewest GPUs, those with the most free memory first, that hold {} of weights "
      "(what requests need comes on top)",
      fmt::join(words, ", "), human_bytes(facts->weight_bytes)));
  return words;
}

// A cluster chooses the GPUs: what is known of those of this machine says nothing about them.
void leave_to_cluster(DeployOptions& options) {
  for (auto& device : options.request.devices) {
    device.host_place.reset();
    device.model.clear();
    device.compute_capability.reset();
  }
  if (!options.request.devices.empty()) {
    options.notes.push_back(
        "Kubernetes chooses the GPUs, so only how many there are and of which kind is written");
  }
}

// The devices of a plan, and how it splits the model over them.
Result<std::vector<std::string>> take_plan(const std::string& file, const Result<ModelFacts>& facts,
                                           DeployOptions& options) {
  auto& request = options.request;
  auto planned = MUSTER_TRY(planned_containers(
      file, request.api, facts ? facts->name : request.model, options.is_dry_run));
  request.copies = planned.copies;
  request.shards = planned.shards;
  if (request.api == ServerApi::Muster) request.shards.reset();
  if (planned.partition) request.environment.push_back(*planned.partition);
  return planned.devices;
}

// muster runs on CPUs too, and several of them: no GPU goes into the container then, and the words
// go on to the program inside.
bool are_cpus(const std::vector<std::string>& words) {
  return std::all_of(words.begin(), words.end(), [](const std::string& word) {
    const auto names = split(word, ',');
    return std::all_of(names.begin(), names.end(), [](const std::string& name) {
      return name == "cpu" || name.ends_with("xcpu") || name.starts_with("cpu:");
    });
  });
}

}  // namespace

Status choose_deploy_devices(const Arguments& arguments, const ContainerHost& host,
                             const Result<ModelFacts>& facts, DeployOptions& options) {
  auto words = arguments.values("--devices");
  const bool is_auto = arguments.has("--auto-select");
  const auto plan = arguments.value("--plan");
  if (plan && (is_auto || !words.empty())) {
    return invalid("--plan says which devices: leave out --devices and --auto-select");
  }
  if (plan) words = MUSTER_TRY(take_plan(*plan, facts, options));
  // Neither way of naming devices, or both of them.
  if (is_auto == !words.empty()) {
    return invalid(is_auto ? "--auto-select chooses the devices that --devices names: say one"
                           : "which devices? Name them with --devices (muster deploy container "
                             "--detect-only lists them), or say --plan, --auto-select or --devices "
                             "none");
  }
  if (is_auto) words = MUSTER_TRY(select_devices(host, facts, options));
  // Devices of the program inside the container: from the outside there is no GPU to hand in.
  if (options.request.api == ServerApi::Muster && are_cpus(words)) {
    options.request.own_devices = fmt::format("{}", fmt::join(words, ","));
    words = {"none"};
  }
  auto chosen = MUSTER_TRY(parse_container_devices(words, host, options.is_dry_run));
  options.request.devices = std::move(chosen.devices);
  if (options.format == DeployFormat::Kubernetes) leave_to_cluster(options);
  options.request.group_ids = std::move(chosen.group_ids);
  options.notes.insert(options.notes.end(), chosen.notes.begin(), chosen.notes.end());
  return Done{};
}

}  // namespace muster
