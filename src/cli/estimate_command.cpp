#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "cli/plan_json.h"
#include "cli/plan_options.h"
#include "cli/plan_view.h"
#include "modelfile/model_description.h"
#include "planner/memory_model.h"
#include "terminal/table.h"
#include "terminal/terminal_info.h"

namespace muster {
namespace {

CommandSpec estimate_spec() {
  return {
      .name = "estimate",
      .summary = "show the memory a model needs, over dtypes and contexts",
      .usage = "MODEL",
      .positional_least = 1,
      .positional_most = 1,
      .groups = {workload_flags(),
                 {"Answer",
                  {},
                  {{"--on-cpu", "", "a CPU device: no driver context, no GPU workspace"},
                   {"--json", "", "weights to the byte, and every estimate, as a JSON object"},
                   {"--explain", "", "the formula, source and bound of every part"}}}},
      .examples =
          "  muster estimate ./llama-3-8b --batch 16\n"
          "  muster estimate ./model.gguf --context 8192 --kv-dtype q8_0\n"
          "  muster estimate ./config.json --task train --zero 3 --zero-ranks 8 --json\n",
  };
}

struct Estimate {
  std::string dtype;  // "as stored" or the one asked for
  Workload workload;
  MemoryParts memory;
};

// The contexts of the table: the one asked for, or some up to the model's.
std::vector<std::uint32_t> contexts_of(const Workload& workload, const ModelShape& shape) {
  if (workload.context > 0) return {workload.context};
  constexpr std::array<std::uint32_t, 4> usual{128, 2048, 8192, 32768};
  std::vector<std::uint32_t> contexts;
  for (const auto context : usual) {
    if (shape.length_max == 0 || context < shape.length_max) contexts.push_back(context);
  }
  if (shape.length_max > 0) contexts.push_back(shape.length_max);
  return contexts;
}

Result<std::vector<Estimate>> estimates_of(const ModelDescription& model, const Workload& asked,
                                           bool is_gpu) {
  std::vector<std::optional<std::string>> dtypes{asked.dtype};
  // Training says by its precision what weights are kept in.
  if (!asked.dtype && asked.task != PlanTask::Train) dtypes = {std::nullopt, "fp32", "bf16"};
  std::vector<Estimate> estimates;
  for (const auto& dtype : dtypes) {
    for (const auto context : contexts_of(asked, model.shape)) {
      auto workload = asked;
      workload.dtype = dtype;
      workload.context = context;
      const auto memory =
          MUSTER_TRY(stage_memory(model, workload,
                                  {.first_unit = 0,
                                   .last_unit = static_cast<std::uint32_t>(model.units.size()),
                                   .is_gpu = is_gpu}));
      estimates.push_back({dtype.value_or("as stored"), workload, memory});
    }
  }
  return estimates;
}

std::string estimate_text(const ModelDescription& model, const std::vector<Estimate>& estimates,
                          std::size_t width) {
  const auto& workload = estimates.front().workload;
  auto text = wrapped(
      fmt::format("{} ({}, {} layers): {} in {} tensors, {}", model.name, model.shape.family,
                  model.shape.layers.size(), human_bytes(model.stored_bytes()),
                  with_thousands(model.tensors.size()),
                  model.weight_source == WeightSource::Headers ? "read from the weight files"
                                                               : "computed from its config"),
      "  ", width);
  text +=
      fmt::format("to {}, {} sequence{} at once, on one device\n\n", plan_task_name(workload.task),
                  with_thousands(workload.batch), workload.batch == 1 ? "" : "s");
  const bool is_training = workload.task == PlanTask::Train;
  const bool has_cache = workload.task == PlanTask::Generate;
  std::vector<Column> columns{
      {.title = "dtype"}, {"context", Align::Right}, {"weights", Align::Right}};
  if (has_cache) columns.push_back({"KV cache", Align::Right});
  if (is_training) columns.push_back({"states", Align::Right});
  columns.insert(columns.end(), {{"activ.", Align::Right},
                                 {"logits", Align::Right},
                                 {"other", Align::Right},
                                 {"total", Align::Right}});
  Table table(std::move(columns));
  for (const auto& [dtype, its_workload, memory] : estimates) {
    std::vector<std::string> cells{dtype, with_thousands(its_workload.context),
                                   human_bytes(memory.weights)};
    if (has_cache) cells.push_back(human_bytes(memory.kv_cache));
    if (is_training) cells.push_back(human_bytes(memory.gradients + memory.optimizer));
    for (const auto bytes :
         {memory.activations, memory.logits, memory.workspace + memory.context, memory.total()}) {
      cells.push_back(bytes == 0 ? "-" : human_bytes(bytes));
    }
    table.add_row(std::move(cells));
  }
  return text + table.render(width);
}

std::string explanation_text(const ModelDescription& model, const Workload& workload,
                             const MemoryParts& memory, std::size_t width) {
  std::string text = "\n";
  for (const auto& part : explain_memory(model, workload)) {
    if (part_bytes(memory, part.part) == 0) continue;
    text +=
        wrapped(fmt::format("{} = {} [{}; {}]", part.part, part.formula, part.source, part.bound),
                "  ", width);
  }
  return text;
}

nlohmann::ordered_json estimate_json(const ModelDescription& model,
                                     const std::vector<Estimate>& estimates) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& estimate : estimates) {
    list.push_back({{"dtype", estimate.dtype},
                    {"context", estimate.workload.context},
                    {"memory", memory_json(estimate.memory)}});
  }
  return {{"model", model.name},
          {"family", model.shape.family},
          {"layers", model.shape.layers.size()},
          {"weights", weights_json(model)},
          {"workload", workload_json(estimates.front().workload)},
          {"estimates", std::move(list)}};
}

Result<int> run_estimate(const CommandContext& context) {
  const auto& arguments = context.arguments;
  const auto source = MUSTER_TRY(find_model_source(arguments.positionals.front()));
  const auto model = MUSTER_TRY(describe_model(source));
  const auto workload = MUSTER_TRY(workload_of(arguments, model.shape.kind));
  const auto estimates = MUSTER_TRY(estimates_of(model, workload, !arguments.has("--on-cpu")));
  if (arguments.has("--json")) {
    MUSTER_TRY(context.output.append(estimate_json(model, estimates).dump(2) + "\n"));
    return 0;
  }
  const auto width = inspect_terminal(STDOUT_FILENO).width;
  MUSTER_TRY(context.output.append(estimate_text(model, estimates, width)));
  if (arguments.has("--explain")) {
    MUSTER_TRY(context.output.append(
        explanation_text(model, estimates.front().workload, estimates.front().memory, width)));
  }
  return 0;
}

}  // namespace

Command estimate_command() { return {estimate_spec(), run_estimate}; }

}  // namespace muster
