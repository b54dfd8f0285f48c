// Finds model and machine, makes one plan and shows it in the form that is asked for. A plan may be
// of a machine that is not here, so it is said apart whether this program could carry it out now,
// and why not. Forms that describe a single copy restrict the search to one copy, unless flags say
// otherwise.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/machine_choice.h"
#include "cli/messages.h"
#include "cli/plan_options.h"
#include "cli/plan_output.h"
#include "cli/plan_view.h"
#include "cli/recommendation.h"
#include "jobs/decoder_source.h"
#include "modelfile/model_catalogue.h"
#include "modelfile/model_folder.h"
#include "planner/forms/accelerate_model.h"
#include "planner/forms/module_cases.h"
#include "planner/forms/plan_files.h"
#include "planner/forms/plan_json.h"
#include "planner/plan/plan.h"
#include "planner/plan/recommend.h"
#include "spec/generation.h"
#include "spec/gpu_decoder_limits.h"
#include "terminal/terminal_info.h"

namespace muster {
namespace {

CommandSpec plan_spec() {
  return {
      .name = "plan",
      .summary = "show where a model goes, what it needs, and why",
      .usage = "MODEL",
      .positional_least = 0,
      .positional_most = 1,
      .groups =
          {workload_flags(),
           placement_flags(),
           {"Answer",
            {},
            {{"--json", "", "the plan as a JSON object"},
             {"--explain", "", "every stage's reason, and the formula of every part"},
             {"--recommend", "", "the device to choose here, and the hardware the model needs"},
             {"--out", "FILE", "write the plan to a file", "-o"},
             {.name = "--format",
              .value_name = "FORM",
              .help = "of the file: yaml, hf_device_map, tensor_split or vllm (default: yaml)",
              .choices = {"yaml", "hf_device_map", "tensor_split", "vllm"}},
             {.name = "--compat",
              .value_name = "PEER",
              .help = "place exactly as accelerate 1.15 does",
              .choices = {"accelerate"}},
             {"--modules", "FILE", "answer a JSON list of module trees instead of a model"}}}},
      .examples =
          "  muster plan llama-3-8b --machine sim:2xA10G-24G --context 8192\n"
          "  muster plan all-MiniLM-L6-v2 --batch 64 -o plan.yaml\n"
          "  muster plan ./config.json --machine sim:8xH100-80G --format hf_device_map \\\n"
          "    -o map.json\n",
      .words = {WordKind::AnyModel},
  };
}

Result<PlanFormat> format_of(const Arguments& arguments) {
  return parse_plan_format(arguments.value("--format").value_or("yaml"));
}

bool has_decoder_devices(const Machine& machine) {
  return std::all_of(machine.devices.begin(), machine.devices.end(), [](const auto& device) {
    return device.kind == DeviceKind::Cpu || runs_as_gpu(device.kind);
  });
}

bool is_on_gpus(const Machine& machine, const Plan& plan) {
  const auto& devices = plan.copies.front().stages.front().devices;
  return machine.devices[devices.front()].kind != DeviceKind::Cpu;
}

// What stands in the way of a GPU that is to compute this decoder; empty: nothing.
std::string gpu_hindrance(const ModelDescription& model, const Plan& plan) {
  if (auto lacking = model.decoder ? not_computed_on_gpu(*model.decoder) : std::nullopt) {
    return *std::move(lacking);
  }
  const bool has_blocks = std::any_of(model.tensors.begin(), model.tensors.end(),
                                      [](const auto& tensor) { return tensor.is_blocked; });
  // As stored, blocks count with their own bits.
  if (has_blocks && !plan.workload.dtype) {
    return "a file's own bits are multiplied on CPUs only: plan with --dtype bf16";
  }
  if (plan.workload.kv_dtype != "auto") {
    return "a GPU keeps keys and values as --kv-dtype auto alone says";
  }
  return {};
}

// What makes `muster serve` hold what was planned.
std::string serve_flags(const Workload& workload) {
  std::string flags;
  const auto& dtype = workload.dtype;
  if (dtype && parse_decoder_precision(*dtype)) flags += " --precision " + *dtype;
  if (workload.kv_dtype != "auto") flags += " --kv-cache-dtype " + workload.kv_dtype;
  return flags;
}

bool is_replicated(const Plan& plan) {
  return plan.tensor_parallel == 1 &&
         std::all_of(plan.copies.begin(), plan.copies.end(), [](const auto& copy) {
           return copy.stages.size() == 1 && copy.stages.front().place == PlanPlace::Device;
         });
}

// Which of the plans this program can carry out, and where it cannot, why.
PlanVerdict verdict_of(const FoundModel& found, const ChosenMachine& chosen, const Plan& plan) {
  if (plan.verdict.fit == Fit::No) return {false, "it does not fit"};
  if (plan.workload.task == PlanTask::Train) return {false, "this build does not train"};
  const bool generates = plan.workload.task == PlanTask::Generate;
  if (generates && !has_decoder_devices(chosen.machine)) {
    return {false, "this build generates on CPUs and NVIDIA GPUs only"};
  }
  if (!is_replicated(plan)) {
    return {false, fmt::format("this build {} with a whole copy on each device only",
                               generates ? "generates" : "embeds")};
  }
  if (!chosen.is_here) return {false, chosen.machine.name + " is not this machine"};
  if (found.pull_id) return {false, "its files are not here: muster pull " + *found.pull_id};
  if (generates) {
    if (!names_decoder(found.source)) return {false, "this build has no decoder of its family"};
    if (found.model.weight_source == WeightSource::Config) return {false, "it has no weights"};
    auto hindrance = is_on_gpus(chosen.machine, plan) ? gpu_hindrance(found.model, plan) : "";
    if (!hindrance.empty()) return {false, std::move(hindrance)};
    if (!parse_kv_cache_dtype(plan.workload.kv_dtype)) {
      return {false, "this build keeps keys and values in fp32, fp16 or int8"};
    }
    return {true, fmt::format("`muster serve{}` puts a whole copy on each device, and needs no "
                              "plan for it",
                              serve_flags(plan.workload))};
  }
  // What `muster embed` would say of it, a GGUF file included.
  const auto folder = find_model(found.source.string());
  if (!folder) return {false, folder.error().message};
  const auto model = read_model_folder(*folder);
  if (!model) return {false, model.error().message};
  return {true, "`muster embed --plan` puts a whole copy on each device"};
}

// A form that says where one copy lies, whose stages take turns.
bool is_of_one_copy(PlanFormat format) {
  return format == PlanFormat::HfDeviceMap || format == PlanFormat::TensorSplit;
}

// What fewer devices hold is quicker when stages take turns. Flags that say otherwise count.
void plan_for_one_copy(const Arguments& arguments, PlanRequest& request) {
  if (request.strategy != PlanStrategy::Auto) return;
  if (!request.data_parallel) request.data_parallel = 1;
  if (!request.tensor_parallel) request.tensor_parallel = 1;
  if (!arguments.has("--objective")) request.objective = PlanObjective::FewestDevices;
}

// A map fixes where everything goes, and the planner only works out what that needs.
Result<Plan> plan_of(const Arguments& arguments, const ModelDescription& model,
                     const Machine& machine) {
  auto request = MUSTER_TRY(plan_request_of(arguments, model.shape.kind));
  const auto format = MUSTER_TRY(format_of(arguments));
  const bool is_one_copy = is_of_one_copy(format);
  if (is_one_copy) plan_for_one_copy(arguments, request);
  const auto file = arguments.value("--map");
  if (!file) {
    auto plan = MUSTER_TRY(make_plan(model, machine, request));
    if (is_one_copy && plan.is_placed() && plan.strategy == PlanStrategy::Auto) {
      plan.reasons.push_back(fmt::format("--format {} says where one copy lies, so one is planned",
                                         *arguments.value("--format")));
    }
    return plan;
  }
  const auto text = MUSTER_TRY(read_file(*file));
  const auto read = MUSTER_TRY(parse_plan_file(*file, text, model, machine));
  if (arguments.has("--strategy") && request.strategy != PlanStrategy::Custom) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--map goes with the strategy custom, not {}",
                             plan_strategy_name(request.strategy))};
  }
  MUSTER_TRY(apply_plan_file(read, request));
  return make_plan(model, machine, request);
}

Result<int> answer_modules(const CommandContext& context, const std::string& file) {
  const auto text = MUSTER_TRY(read_file(file));
  const auto answer = MUSTER_TRY(answer_module_cases(text, context.arguments.has("--compat")));
  MUSTER_TRY(context.output.append(answer));
  return 0;
}

Status write_plan(const Arguments& arguments, const ModelDescription& model, const Machine& machine,
                  const Plan& plan) {
  const auto format = MUSTER_TRY(format_of(arguments));
  const auto out = arguments.value("--out");
  if (!out) {
    if (!arguments.has("--format")) return Done{};
    return Error{ErrorKind::InvalidArgument, "--format wants a file to write: name it with -o"};
  }
  // A plan that does not fit is shown and not written: a file would be taken for one that does.
  if (!plan.is_placed()) return Done{};
  const auto text = MUSTER_TRY(plan_in_format(format, model, machine, plan));
  return write_file_atomically(*out, text);
}

// What the command reads may not be what it writes: a file of the model, the machine's, the map.
Status check_output(const Arguments& arguments, const FoundModel& found) {
  const auto out = arguments.value("--out");
  std::error_code ignored;
  if (!out || !std::filesystem::exists(*out, ignored)) return Done{};
  const auto refuse = [&](std::string_view what) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("-o {}: that is {}; it would be overwritten", *out, what)};
  };
  for (const auto* flag : {"--machine", "--map"}) {
    const auto file = arguments.value(flag);
    if (file && std::filesystem::equivalent(*file, *out, ignored)) {
      return refuse(fmt::format("the file of {}", flag));
    }
  }
  if (found.source.empty()) return Done{};
  if (std::filesystem::equivalent(found.source, *out, ignored)) return refuse("the model");
  // A plan may lie beside the model and be made again: of .json, only the model's own names count.
  constexpr std::array<std::string_view, 4> kOfModels{".safetensors", ".gguf", ".bin", ".model"};
  for (const auto& entry : std::filesystem::directory_iterator(found.source, ignored)) {
    const auto name = entry.path().filename().string();
    const auto extension = entry.path().extension().string();
    const bool is_weights =
        std::find(kOfModels.begin(), kOfModels.end(), extension) != kOfModels.end();
    const bool is_settings = name.ends_with("config.json") || name.ends_with("index.json") ||
                             name.starts_with("tokenizer") || name == "modules.json";
    if ((is_weights || is_settings) && std::filesystem::equivalent(entry.path(), *out, ignored)) {
      return refuse("a file of the model");
    }
  }
  return Done{};
}

// Checked first, so that a slip in the peer's name costs no reading of a model.
Status check_compat(const Arguments& arguments) {
  const auto peer = arguments.value("--compat");
  if (!peer || *peer == "accelerate") return Done{};
  return Error{ErrorKind::InvalidArgument,
               fmt::format("--compat {}: the peer is accelerate", *peer)};
}

// The map of a peer is a device map, too.
Status check_out_is_no_other_file(const Arguments& arguments) {
  const auto out = arguments.value("--out");
  if (!out) return Done{};
  const auto form =
      arguments.has("--compat") ? "hf_device_map" : arguments.value("--format").value_or("yaml");
  return check_plan_output(*out, MUSTER_TRY(parse_plan_format(form)), form);
}

Result<int> answer_recommendation(const CommandContext& context, const ModelDescription& model,
                                  const Machine& machine) {
  const auto request = MUSTER_TRY(plan_request_of(context.arguments, model.shape.kind));
  const auto classes = known_classes();
  const auto advice = MUSTER_TRY(recommend(model, machine, request, classes));
  MUSTER_TRY(context.output.append(
      context.arguments.has("--json")
          ? recommendation_json(model, machine, advice, classes).dump(2) + "\n"
          : recommendation_text(model, machine, advice, classes, context.terminal(STDOUT_FILENO))));
  return 0;
}

Result<int> answer_compat(const CommandContext& context, const ModelDescription& model,
                          const Machine& machine) {
  const auto& arguments = context.arguments;
  if (arguments.has("--format")) {
    return Error{ErrorKind::InvalidArgument,
                 "--format does not go with --compat: the map is accelerate's own"};
  }
  const auto request = MUSTER_TRY(plan_request_of(arguments, model.shape.kind));
  const auto map = MUSTER_TRY(accelerate_map_of(model, machine, request));
  const auto out = arguments.value("--out");
  MUSTER_TRY(out ? write_file_atomically(*out, map + "\n") : context.output.append(map + "\n"));
  return 0;
}

Result<int> answer_plan(const CommandContext& context, const FoundModel& found,
                        const ChosenMachine& chosen) {
  const auto& arguments = context.arguments;
  const auto& machine = chosen.machine;
  const auto plan = MUSTER_TRY(plan_of(arguments, found.model, machine));
  MUSTER_TRY(write_plan(arguments, found.model, machine, plan));
  const auto verdict = verdict_of(found, chosen, plan);
  const bool explain = arguments.has("--explain");
  MUSTER_TRY(context.output.append(
      arguments.has("--json")
          ? plan_json(found.model, machine, plan, verdict, explain).dump(2) + "\n"
          : plan_text(found.model, machine, plan, verdict, explain,
                      context.terminal(STDOUT_FILENO))));
  // The answer is printed all the same: what would make it fit is part of it.
  return plan.verdict.fit == Fit::No ? exit_code(ErrorKind::ResourceExhausted) : 0;
}

Result<int> run_plan(const CommandContext& context) {
  const auto& arguments = context.arguments;
  MUSTER_TRY(check_compat(arguments));
  for (const auto* flag : {"--modules", "--recommend"}) {
    if (arguments.has(flag) && arguments.has("--out")) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("-o goes with a plan or with --compat, not with {}", flag)};
    }
  }
  if (const auto file = arguments.value("--modules")) return answer_modules(context, *file);
  if (arguments.positionals.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 "which model? Name its folder, a .gguf file, a config.json, a hub id, or a public "
                 "model such as llama-3-8b"};
  }
  const auto found = MUSTER_TRY(find_and_describe(arguments.positionals.front()));
  MUSTER_TRY(check_output(arguments, found));
  MUSTER_TRY(check_out_is_no_other_file(arguments));
  const auto chosen = MUSTER_TRY(
      choose_machine(arguments.value("--machine").value_or("here"), context.config, context.clock));
  if (!chosen.lost_gpus.empty()) say(Tone::Warning, chosen.lost_gpus, context.color);
  if (arguments.has("--recommend")) {
    return answer_recommendation(context, found.model, chosen.machine);
  }
  if (arguments.has("--compat")) return answer_compat(context, found.model, chosen.machine);
  return answer_plan(context, found, chosen);
}

}  // namespace

Command plan_command() { return {plan_spec(), run_plan}; }

}  // namespace muster
