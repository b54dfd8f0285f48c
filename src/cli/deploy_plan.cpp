// A plan carried out by containers: its copies become containers, its stages and their width become
// the server's own flags. What a server cannot be told is refused by name. A plan names its model
// by hub id or by folder, so models are compared by the last part of their names. A plan for a task
// that the server cannot do is refused, and so is a plan of another model, whose split and memory
// would be those of something else.

#include "cli/deploy_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "deploy/server_api.h"
#include "planner/forms/plan_files.h"

namespace muster {
namespace {

std::string behind_slash(const std::string& name) { return name.substr(name.rfind('/') + 1); }

// A plan has the hub id, or a folder's last name.
bool is_of_model(const PlanFile& plan, const std::string& model) {
  const auto end = model.find_last_not_of('/');
  return plan.model == model || behind_slash(plan.model) == behind_slash(model.substr(0, end + 1));
}

std::string_view task_of(ServerApi api) {
  return api == ServerApi::Tei || api == ServerApi::Muster ? "embed" : "generate";
}

Status check_split(const PlanFile& plan, ServerApi api, std::uint32_t stage_count,
                   const std::string& file) {
  const auto title = server_facts(api).title;
  const auto refused = [&](std::string what) {
    return Error{ErrorKind::Unsupported, fmt::format("{}: {}", file, what)};
  };
  for (const auto& device : plan.devices) {
    if (device == "disk" || (device == "cpu" && api != ServerApi::Muster)) {
      return refused(
          fmt::format("the plan keeps a part of the model in {}, and {} keeps all of it "
                      "on its devices",
                      device == "disk" ? "files" : "host memory", title));
    }
    if (device.starts_with("cpu:") && api != ServerApi::Muster) {
      return refused(
          fmt::format("the plan shares the cores among CPU devices, and {} has all of them in one "
                      "container: --devices none",
                      title));
    }
  }
  const bool is_whole_only = api == ServerApi::Tei || api == ServerApi::Muster;
  if (is_whole_only && !plan.is_replicated) {
    return refused(
        fmt::format("{} has a whole copy on each device, and the plan splits the model", title));
  }
  if (api == ServerApi::Tgi && stage_count > 1) {
    return refused(
        fmt::format("{} has no pipeline stages, and the plan has {}", title, stage_count));
  }
  return Done{};
}

}  // namespace

Result<PlannedContainers> planned_containers(const std::string& file, ServerApi api,
                                             const std::string& model, bool may_be_elsewhere) {
  const auto text = MUSTER_TRY(read_file(file));
  const auto plan = MUSTER_TRY(parse_plan_yaml(file, text));
  if (!is_of_model(plan, model)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: a plan for {}, and the model is {}", file, plan.model, model)};
  }
  if (plan.task != task_of(api)) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: a plan to {}, and {} can {}", file, plan.task,
                             server_facts(api).title, task_of(api))};
  }
  if (plan.machine.starts_with("sim:") && !may_be_elsewhere) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: a plan for {}, a simulated machine: --dry-run shows the commands",
                             file, plan.machine)};
  }
  const auto stage_count = static_cast<std::uint32_t>(plan.stage_layers.size());
  MUSTER_TRY(check_split(plan, api, stage_count, file));
  PlannedContainers planned;
  planned.copies = plan.copy_count;
  planned.shards = {.tensor = plan.stage_width, .pipeline = stage_count};
  // Devices of here by a name of their own ("2xcpu") are numbered within it.
  const bool is_own_name = plan.machine.find("xcpu") != std::string::npos;
  planned.devices = is_own_name ? std::vector{plan.machine} : plan.devices;
  if (!is_own_name && plan.devices.size() != std::size_t{planned.copies} * planned.shards.tensor *
                                                 planned.shards.pipeline) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: the copies of the plan are not equal, and containers are", file)};
  }
  const auto& layers = plan.stage_layers;
  const bool is_uneven =
      std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) != layers.end();
  if (api == ServerApi::Vllm && is_uneven) {
    planned.partition = {"VLLM_PP_LAYER_PARTITION", fmt::format("{}", fmt::join(layers, ","))};
  }
  return planned;
}

}  // namespace muster
