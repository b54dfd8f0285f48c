// A form that cannot say all of a plan refuses instead of writing a weaker one: a device map with
// one of four copies would look complete. Only muster's own YAML has words for all of it: copies,
// tensor groups and layers off the devices. Strings are quoted as JSON, a subset of YAML, so names
// with colons or hashes are safe.

#include "planner/forms/plan_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text.h"
#include "planner/forms/plan_json.h"

namespace muster {
namespace {

constexpr std::array<std::pair<std::string_view, PlanFormat>, 4> kFormats{{
    {"yaml", PlanFormat::Yaml},
    {"hf_device_map", PlanFormat::HfDeviceMap},
    {"tensor_split", PlanFormat::TensorSplit},
    {"vllm", PlanFormat::Vllm},
}};

std::string stage_device(const Machine& machine, const PlannedStage& stage) {
  if (stage.place == PlanPlace::Host) return "cpu";
  if (stage.place == PlanPlace::Disk) return "disk";
  return machine.devices[stage.devices.front()].name();
}

bool is_single(const Plan& plan) { return plan.copies.size() == 1 && plan.tensor_parallel == 1; }

Error cannot_say(std::string_view form, std::string_view what) {
  return Error{ErrorKind::Unsupported, fmt::format("{} cannot say {}", form, what)};
}

// JSON strings are YAML strings too.
std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string in_yaml(const ModelDescription& model, const Machine& machine, const Plan& plan) {
  const auto& workload = plan.workload;
  auto text = fmt::format(
      "muster_plan: 1\nmodel: {}\nmachine: {}\nstrategy: {}\nobjective: {}\ntask: {}\nbatch: {}\n"
      "context: {}\ndtype: {}\ntensor_parallel: {}\npipeline_parallel: {}\ndata_parallel: {}\n"
      "copies:\n",
      quoted(model.name), quoted(machine.name), plan_strategy_name(plan.strategy),
      plan_objective_name(plan.objective), plan_task_name(workload.task), workload.batch,
      workload.context, quoted(workload.dtype.value_or("as stored")), plan.tensor_parallel,
      plan.pipeline_parallel, plan.copies.size());
  for (const auto& copy : plan.copies) {
    text += "  - stages:\n";
    for (const auto& stage : copy.stages) {
      std::vector<std::string> devices;
      for (const auto device : stage.devices)
        devices.push_back(quoted(machine.devices[device].name()));
      if (devices.empty()) devices.push_back(quoted(stage_device(machine, stage)));
      std::vector<std::string> modules;
      for (auto i = stage.first_unit; i < stage.last_unit; ++i) {
        for (const auto& module : model.units[i].modules) modules.push_back(quoted(module));
      }
      text +=
          fmt::format("      - devices: [{}]\n        memory_bytes: {}\n        modules: [{}]\n",
                      fmt::join(devices, ", "), stage.memory.total(), fmt::join(modules, ", "));
    }
  }
  return text;
}

Result<std::string> in_device_map(const ModelDescription& model, const Machine& machine,
                                  const Plan& plan) {
  if (!is_single(plan)) {
    return cannot_say("an hf_device_map",
                      "several copies or tensor parallelism: plan with "
                      "--data-parallel 1 --tensor-parallel 1");
  }
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  for (const auto& stage : plan.copies.front().stages) {
    for (auto i = stage.first_unit; i < stage.last_unit; ++i) {
      for (const auto& module : model.units[i].modules) {
        if (stage.place == PlanPlace::Device) {
          map[module] = machine.devices[stage.devices.front()].index;
        } else {
          map[module] = stage_device(machine, stage);
        }
      }
    }
  }
  return map.dump(2) + "\n";
}

bool is_all_on_devices(const Plan& plan) {
  const auto& stages = plan.copies.front().stages;
  return std::all_of(stages.begin(), stages.end(),
                     [](const auto& stage) { return stage.place == PlanPlace::Device; });
}

// Layers of each device of the machine, the head counted with them.
Result<std::string> in_tensor_split(const ModelDescription& model, const Machine& machine,
                                    const Plan& plan) {
  if (!is_single(plan) || !is_all_on_devices(plan)) {
    return cannot_say("a tensor split", "several copies, tensor parallelism or offloaded layers");
  }
  std::vector<std::uint32_t> counts(machine.devices.size(), 0);
  std::uint32_t last_device = 0;
  for (const auto& stage : plan.copies.front().stages) {
    const auto device = stage.devices.front();
    if (device < last_device) {
      return cannot_say("a tensor split", "stages in another order than the devices'");
    }
    last_device = device;
    for (auto i = stage.first_unit; i < stage.last_unit; ++i) {
      if (model.units[i].kind != UnitKind::Embedding) ++counts[device];
    }
  }
  return fmt::format("{}\n", fmt::join(counts, ","));
}

Result<std::string> in_vllm(const ModelDescription& model, const Plan& plan) {
  if (!is_all_on_devices(plan)) return cannot_say("vLLM's flags", "offloaded layers");
  std::string text;
  if (plan.pipeline_parallel > 1) {
    text = fmt::format("VLLM_PP_LAYER_PARTITION={} ", fmt::join(layer_partition(model, plan), ","));
  }
  return text +
         fmt::format(
             "--tensor-parallel-size {} --pipeline-parallel-size {} --data-parallel-size {}\n",
             plan.tensor_parallel, plan.pipeline_parallel, plan.copies.size());
}

}  // namespace

Result<PlanFormat> parse_plan_format(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [its_name, format] : kFormats) {
    if (its_name == name) return format;
    names.emplace_back(its_name);
  }
  const auto nearest = nearest_name(name, names);
  return Error{ErrorKind::InvalidArgument,
               fmt::format("--format {}: {}", name,
                           nearest ? "did you mean " + *nearest + "?"
                                   : fmt::format("wanted one of {}", fmt::join(names, ", ")))};
}

std::vector<std::uint32_t> layer_partition(const ModelDescription& model, const Plan& plan) {
  std::vector<std::uint32_t> layers;
  for (const auto& stage : plan.copies.front().stages) {
    const auto begin = model.units.begin() + stage.first_unit;
    const auto end = model.units.begin() + stage.last_unit;
    layers.push_back(static_cast<std::uint32_t>(
        std::count_if(begin, end, [](const auto& unit) { return unit.kind == UnitKind::Block; })));
  }
  return layers;
}

Result<std::string> plan_in_format(PlanFormat format, const ModelDescription& model,
                                   const Machine& machine, const Plan& plan) {
  switch (format) {
    case PlanFormat::Yaml:
      return in_yaml(model, machine, plan);
    case PlanFormat::HfDeviceMap:
      return in_device_map(model, machine, plan);
    case PlanFormat::TensorSplit:
      return in_tensor_split(model, machine, plan);
    case PlanFormat::Vllm:
      return in_vllm(model, plan);
  }
  return Error{ErrorKind::Internal, "an unknown plan format"};
}

Status apply_plan_file(const PlanFile& file, PlanRequest& request) {
  if (file.strategy) request.strategy = *file.strategy;
  request.custom_map = file.custom_map;
  request.stage_layers = file.layer_partition;
  const auto set = [](std::string_view flag, const std::optional<std::uint32_t>& asked,
                      std::optional<std::uint32_t>& value) -> Status {
    if (asked && value && *asked != *value) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{} {} and the file of --map ({}) disagree", flag, *value, *asked)};
    }
    if (asked) value = asked;
    return Done{};
  };
  MUSTER_TRY(set("--tensor-parallel", file.tensor_parallel, request.tensor_parallel));
  MUSTER_TRY(set("--pipeline-parallel", file.pipeline_parallel, request.pipeline_parallel));
  return set("--data-parallel", file.data_parallel, request.data_parallel);
}

}  // namespace muster
