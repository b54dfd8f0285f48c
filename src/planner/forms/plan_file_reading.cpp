// Files are told apart by content, not by name, since people pass flags and splits by hand. Each
// form is read into the same request, so that one planner checks them all: a file is never trusted
// to fit. A tensor split is turned into devices in float arithmetic as llama.cpp does it, because a
// double would move the layer at a boundary. Source: llama.cpp, src/llama-model.cpp, load_tensors.

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text.h"
#include "planner/forms/plan_files.h"

namespace muster {
namespace {

Error wrong(std::string_view file, std::string_view what) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{}: {}", file, what)};
}

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<PlanFile> parse_device_map(std::string_view file, std::string_view text) {
  const auto json = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("{}: not a JSON object of modules and devices", file)};
  }
  PlanFile read;
  read.strategy = PlanStrategy::Custom;
  for (const auto& [module, device] : json.items()) {
    if (device.is_number_unsigned()) {
      read.custom_map.emplace_back(module, std::to_string(device.get<std::uint64_t>()));
    } else if (device.is_string()) {
      read.custom_map.emplace_back(module, device.get<std::string>());
    } else {
      return wrong(file, fmt::format("the device of {} is neither a number nor a name", module));
    }
  }
  return read;
}

// The device of each layer, as llama.cpp computes it: float shares, cumulated and divided.
Result<PlanFile> parse_tensor_split(std::string_view file, std::string_view text,
                                    const ModelDescription& model, const Machine& machine) {
  std::vector<float> splits;
  for (const auto& piece : split(trim(text), ',')) {
    float share = 0.0F;
    const auto word = trim(piece);
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), share);
    if (error != std::errc() || end != word.data() + word.size() || !(share >= 0.0F)) {
      return wrong(file, fmt::format("a tensor split wants numbers, not \"{}\"", word));
    }
    splits.push_back(share);
  }
  if (splits.size() > machine.devices.size()) {
    return wrong(file, fmt::format("a split over {} devices, and {} has {}", splits.size(),
                                   machine.name, machine.devices.size()));
  }
  const auto sum = std::accumulate(splits.begin(), splits.end(), 0.0F);
  if (!(sum > 0.0F)) return wrong(file, "a tensor split of nothing");
  std::partial_sum(splits.begin(), splits.end(), splits.begin());
  for (auto& value : splits) value /= sum;
  const auto layer_count = static_cast<float>(model.shape.layers.size() + 1);
  const auto device_of = [&](std::uint32_t layer) {
    const auto found =
        std::upper_bound(splits.begin(), splits.end(), static_cast<float>(layer) / layer_count);
    const auto index = std::min<std::ptrdiff_t>(found - splits.begin(),
                                                static_cast<std::ptrdiff_t>(splits.size()) - 1);
    return machine.devices[static_cast<std::size_t>(index)].name();
  };
  PlanFile read;
  read.strategy = PlanStrategy::Custom;
  for (const auto& unit : model.units) {
    std::uint32_t layer = 0;  // the embedding goes with the first layer
    if (unit.kind == UnitKind::Block) layer = unit.layer;
    if (unit.kind == UnitKind::Head) layer = static_cast<std::uint32_t>(model.shape.layers.size());
    for (const auto& module : unit.modules) read.custom_map.emplace_back(module, device_of(layer));
  }
  return read;
}

// The variable comes in front of the flags as a shell would have it, so that a command line can be
// pasted. Flags of vLLM that are not about parallelism are refused, not ignored.
Result<PlanFile> parse_vllm_flags(std::string_view file, std::string_view text) {
  PlanFile read;
  read.strategy = PlanStrategy::Auto;
  std::string flag;
  for (const auto& word : split(trim(text), ' ')) {
    constexpr std::string_view partition = "VLLM_PP_LAYER_PARTITION=";
    if (word.empty()) continue;
    if (word.starts_with(partition)) {
      for (const auto& piece : split(std::string_view(word).substr(partition.size()), ',')) {
        const auto count = whole_number(piece);
        if (!count)
          return wrong(file, fmt::format("{} wants whole numbers, not \"{}\"", partition, piece));
        read.layer_partition.push_back(*count);
      }
    } else if (flag.empty()) {
      flag = word;
    } else {
      const auto count = whole_number(word);
      if (!count || *count == 0)
        return wrong(file, fmt::format("{} wants a number, not {}", flag, word));
      if (flag == "--tensor-parallel-size" || flag == "-tp") {
        read.tensor_parallel = count;
      } else if (flag == "--pipeline-parallel-size" || flag == "-pp") {
        read.pipeline_parallel = count;
      } else if (flag == "--data-parallel-size" || flag == "-dp") {
        read.data_parallel = count;
      } else {
        return wrong(file, fmt::format("{} is none of vLLM's flags for parallelism", flag));
      }
      flag.clear();
    }
  }
  if (!flag.empty()) return wrong(file, fmt::format("{} has no value", flag));
  return read;
}

// How many layers a stage has: the modules whose name ends in a number, "model.layers.7".
std::uint32_t layers_of(const YAML::Node& stage) {
  std::uint32_t count = 0;
  for (const auto& module : stage["modules"]) {
    const auto name = module.as<std::string>();
    if (whole_number(name.substr(name.rfind('.') + 1))) ++count;
  }
  return count;
}

PlanFile read_yaml(const YAML::Node& root) {
  PlanFile read;
  read.model = root["model"].as<std::string>();
  read.machine = root["machine"].as<std::string>();
  read.task = root["task"].as<std::string>();
  const auto tensor_parallel = root["tensor_parallel"].as<std::uint32_t>();
  const auto copies = root["copies"];
  read.is_replicated = tensor_parallel == 1;
  read.copy_count = static_cast<std::uint32_t>(copies.size());
  read.stage_width = tensor_parallel;
  for (const auto& stage : copies[0]["stages"]) read.stage_layers.push_back(layers_of(stage));
  for (const auto& copy : copies) {
    read.is_replicated &= copy["stages"].size() == 1;
    for (const auto& stage : copy["stages"]) {
      for (const auto& device : stage["devices"]) read.devices.push_back(device.as<std::string>());
    }
  }
  if (copies.size() == 1 && tensor_parallel == 1) {
    read.strategy = PlanStrategy::Custom;
    for (const auto& stage : copies[0]["stages"]) {
      const auto device = stage["devices"][0].as<std::string>();
      for (const auto& module : stage["modules"])
        read.custom_map.emplace_back(module.as<std::string>(), device);
    }
    return read;
  }
  read.strategy = PlanStrategy::Auto;
  read.tensor_parallel = tensor_parallel;
  read.pipeline_parallel = root["pipeline_parallel"].as<std::uint32_t>();
  read.data_parallel = static_cast<std::uint32_t>(copies.size());
  return read;
}

}  // namespace

Result<PlanFile> parse_plan_yaml(std::string_view file, std::string_view text) {
  try {
    const auto root = YAML::Load(std::string(text));
    if (!root.IsMap() || !root["muster_plan"]) {
      return Error{ErrorKind::Corrupt, fmt::format("{}: no muster_plan in it", file)};
    }
    if (root["muster_plan"].as<int>() != 1) {
      return Error{ErrorKind::Unsupported,
                   fmt::format("{}: a plan of version {}, and this program reads 1", file,
                               root["muster_plan"].as<std::string>())};
    }
    return read_yaml(root);
  } catch (const YAML::Exception& error) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("{}: line {}: {}", file, error.mark.line + 1, error.msg)};
  }
}

Result<std::string> devices_to_embed(std::string_view file, const PlanFile& plan,
                                     std::string_view model_name) {
  if (plan.model != model_name) {
    return wrong(file, fmt::format("a plan for {}, and the model is {}", plan.model, model_name));
  }
  const auto refused = [&](std::string_view what) {
    return Error{ErrorKind::Unsupported, fmt::format("{}: {}", file, what)};
  };
  if (plan.task != "embed") return refused(fmt::format("a plan to {}, not to embed", plan.task));
  if (plan.machine.starts_with("sim:")) {
    return refused(fmt::format("a plan for {}, a simulated machine", plan.machine));
  }
  const bool has_host = std::any_of(plan.devices.begin(), plan.devices.end(), [](const auto& name) {
    return name == "cpu" || name == "disk";
  });
  if (!plan.is_replicated || plan.devices.empty() || has_host) {
    return refused("this build embeds with a whole copy on each device only");
  }
  // Devices of here by a name of their own ("2xcpu") are numbered within it.
  if (plan.machine != "here") return plan.machine;
  return fmt::format("{}", fmt::join(plan.devices, ","));
}

Result<PlanFile> parse_plan_file(std::string_view file, std::string_view text,
                                 const ModelDescription& model, const Machine& machine) {
  const auto content = trim(text);
  if (content.starts_with("{")) return parse_device_map(file, content);
  if (content.find("muster_plan") != std::string_view::npos) return parse_plan_yaml(file, text);
  if (content.starts_with("-") || content.starts_with("VLLM_"))
    return parse_vllm_flags(file, content);
  if (!content.empty() && content.find_first_not_of("0123456789., \t") == std::string_view::npos) {
    return parse_tensor_split(file, content, model, machine);
  }
  return Error{ErrorKind::Corrupt,
               fmt::format("{}: neither a plan of muster, an hf_device_map, a tensor split nor "
                           "vLLM's flags",
                           file)};
}

}  // namespace muster
