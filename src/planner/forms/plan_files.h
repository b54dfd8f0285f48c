#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "planner/plan/plan.h"
#include "spec/machine.h"
#include "spec/model_weights.h"

namespace muster {

/// The forms in which a plan is written for people and for other programs.
enum class PlanFormat : std::uint8_t {
  Yaml,         // our own, whole: docs/formats/plan.md
  HfDeviceMap,  // transformers and accelerate: {"model.layers.0": 0, …}
  TensorSplit,  // llama.cpp --tensor-split: layers a device, "20,12"
  Vllm,         // vLLM's flags, and VLLM_PP_LAYER_PARTITION
};

/// Errors: InvalidArgument for another word, with the nearest.
Result<PlanFormat> parse_plan_format(std::string_view name);

/// The plan in a form, ending in a newline.
///
/// Errors: Unsupported where the form cannot say it: copies or tensor parallelism in a device map
/// or a tensor split, layers off the devices in a tensor split or vLLM flags.
/// Source: llama.cpp, src/llama-model.cpp, load_tensors (layer i goes to the first device whose
/// cumulated share exceeds i / (layers + 1), the output counted as a layer); vLLM 0.11,
/// VLLM_PP_LAYER_PARTITION in vllm/envs.py.
Result<std::string> plan_in_format(PlanFormat format, const ModelDescription& model,
                                   const Machine& machine, const Plan& plan);

/// What a file of any of these forms asks for.
struct PlanFile {
  std::optional<PlanStrategy> strategy;
  std::vector<std::pair<std::string, std::string>> custom_map;  // module -> device
  std::optional<std::uint32_t> tensor_parallel;
  std::optional<std::uint32_t> pipeline_parallel;
  std::optional<std::uint32_t> data_parallel;
  std::vector<std::uint32_t> layer_partition;  // layers a stage
  std::string model;                           // Yaml only
  std::string machine;                         // Yaml only
  std::string task;                            // Yaml only
  std::vector<std::string> devices;            // Yaml only: of all copies, in order
  bool is_replicated = false;                  // Yaml only: every copy whole on a device of its own
};

/// Tells the form by its content and reads it. `file` stands in messages.
///
/// Errors: Corrupt (it is none of these), InvalidArgument (a field, by name).
Result<PlanFile> parse_plan_file(std::string_view file, std::string_view text,
                                 const ModelDescription& model, const Machine& machine);

/// The same for a plan of our own alone, without a model at hand.
Result<PlanFile> parse_plan_yaml(std::string_view file, std::string_view text);

/// What `--devices` has to say for a plan to be carried out by `muster embed`.
///
/// Errors: Unsupported for anything but whole copies that embed, on devices of this machine;
/// InvalidArgument for a plan of another model than `model_name`.
Result<std::string> devices_to_embed(std::string_view file, const PlanFile& plan,
                                     std::string_view model_name);

/// Puts what the file asks for into the request. Errors: InvalidArgument where flags say otherwise.
Status apply_plan_file(const PlanFile& file, PlanRequest& request);

/// Layers of each stage of the first copy.
std::vector<std::uint32_t> layer_partition(const ModelDescription& model, const Plan& plan);

}  // namespace muster
