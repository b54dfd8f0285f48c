// Memory of a whole copy on one device, over dtypes and contexts, so that a person sees what a
// change would buy. The verdict above the table is the planner's own for the workload that was
// asked for; both come from the same memory model, and --explain prints its formulas.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "cli/fit_view.h"
#include "cli/machine_choice.h"
#include "cli/messages.h"
#include "cli/plan_options.h"
#include "cli/plan_view.h"
#include "modelfile/model_catalogue.h"
#include "planner/forms/plan_json.h"
#include "planner/plan/plan.h"
#include "terminal/table.h"
#include "terminal/terminal_info.h"
#include "terminal/text_wrap.h"

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
                  {{"--machine", "WHAT", "here, 1xcpu, a file, or sim:8xH100-80G (default: here)"},
                   {"--json", "", "weights to the byte, and every estimate, as a JSON object"},
                   {"--explain", "", "the formula, source and bound of every part"}}}},
      .examples =
          "  muster estimate llama-3-8b --machine sim:1xT4-16G --batch 16\n"
          "  muster estimate ./model.gguf --context 8192 --kv-dtype q8_0\n"
          "  muster estimate ./config.json --task train --zero 3 --zero-ranks 8 --json\n",
      .words = {WordKind::AnyModel},
  };
}

struct MemoryEstimate {
  std::string dtype;  // "as stored" or the one asked for
  std::uint32_t context = 0;
  MemoryParts memory;
};

// What is asked, as one command answers it.
struct Question {
  const ModelDescription& model;
  const Machine& machine;
  PlanRequest request;  // its workload is the one that the verdict is about
};

constexpr std::array<std::uint32_t, 4> kUsualContexts{128, 2048, 8192, 32768};

// The contexts of the table: the one asked for, or some up to the model's.
std::vector<std::uint32_t> contexts_of(const Workload& asked, const ModelDescription& model) {
  if (asked.context > 0) return {asked.context};
  const auto length_max = model.shape.length_max;
  // A set, since the model's own length may be one of the usual ones: each is shown once, in order.
  std::set<std::uint32_t> contexts;
  for (const auto context : kUsualContexts) {
    if (length_max == 0 || context < length_max) contexts.insert(context);
  }
  for (const auto context : {length_max, usual_context(model)}) {
    if (context > 0) contexts.insert(context);
  }
  return {contexts.begin(), contexts.end()};
}

// `asked` is the workload of the flags, before a context was chosen for the verdict.
// Each line is a request of its own to the planner's memory model: nothing is scaled from another
// line.
Result<std::vector<MemoryEstimate>> estimates_of(const Question& question, const Workload& asked) {
  std::vector<std::optional<std::string>> dtypes{asked.dtype};
  // Training says by its precision what weights are kept in.
  if (!asked.dtype && asked.task != PlanTask::Train) dtypes = {std::nullopt, "fp32", "bf16"};
  std::vector<MemoryEstimate> estimates;
  for (const auto& dtype : dtypes) {
    for (const auto context : contexts_of(asked, question.model)) {
      auto request = question.request;
      request.workload.dtype = dtype;
      request.workload.context = context;
      const auto memory = MUSTER_TRY(whole_copy_memory(question.model, question.machine, request));
      estimates.push_back({dtype.value_or("as stored"), context, memory});
    }
  }
  return estimates;
}

// In one column what is beside the weights, or part by part.
// Titles and cells come from one function, so that they cannot get out of step.
Table estimate_table(const std::vector<MemoryEstimate>& estimates, PlanTask task, bool has_parts) {
  const auto parts_of = [&](const MemoryParts& memory) {
    std::vector<std::pair<std::string, std::uint64_t>> parts;
    if (!has_parts) {
      parts.emplace_back("work", memory.total() - memory.weights);
      return parts;
    }
    if (task == PlanTask::Generate) parts.emplace_back("KV cache", memory.kv_cache);
    if (task == PlanTask::Train) {
      parts.emplace_back("states", memory.gradients + memory.optimizer);
    }
    parts.emplace_back("activ.", memory.activations);
    parts.emplace_back("logits", memory.logits);
    parts.emplace_back("other", memory.workspace + memory.context);
    return parts;
  };
  std::vector<Column> columns{
      {.title = "dtype"}, {"context", Align::Right}, {"weights", Align::Right}};
  for (const auto& [title, bytes] : parts_of({})) columns.push_back({title, Align::Right});
  columns.push_back({"total", Align::Right});
  Table table(std::move(columns));
  for (const auto& [dtype, context, memory] : estimates) {
    std::vector<TableCell> cells{dtype, with_thousands(context), human_bytes(memory.weights)};
    for (const auto& [title, bytes] : parts_of(memory)) {
      cells.emplace_back(bytes == 0 ? "-" : human_bytes(bytes));
    }
    cells.emplace_back(human_bytes(memory.total()));
    table.add_row(std::move(cells));
  }
  return table;
}

std::string estimate_text(const Question& question, const Plan& plan,
                          const std::vector<MemoryEstimate>& estimates,
                          const TerminalInfo& terminal) {
  const auto& model = question.model;
  const Wrap wrap{.width = terminal.width, .indent = 2};
  auto text = verdict_text(plan.verdict, terminal);
  text += wrapped(
      fmt::format("{} ({}, {} layers): {} in {} tensors, {}", model.name, model.shape.family,
                  model.shape.layers.size(), human_bytes(model.stored_bytes()),
                  with_thousands(model.tensors.size()),
                  model.weight_source == WeightSource::Headers ? "read from the weight files"
                                                               : "computed from its config"),
      wrap);
  text += wrapped("from " + model.origin, wrap);
  text += assumption_text(model, question.machine, plan, terminal.width);
  text += wrapped("a whole copy on one such device, over dtypes and contexts:", wrap);
  const std::array tables{estimate_table(estimates, plan.workload.task, true),
                          estimate_table(estimates, plan.workload.task, false)};
  return text + "\n" + render_first_fitting(tables, terminal);
}

std::string explanation_text(const Question& question, const Workload& workload,
                             const MemoryParts& memory, std::size_t width) {
  std::string text = "\n";
  for (const auto& part :
       explain_memory(question.model, workload, computes_on_gpus(question.machine))) {
    if (part_bytes(memory, part.part) == 0) continue;
    text +=
        wrapped(fmt::format("{} = {} [{}; {}]", part.part, part.formula, part.source, part.bound),
                {.width = width, .indent = 2});
  }
  return text;
}

nlohmann::ordered_json estimate_json(const Question& question, const Plan& plan,
                                     const std::vector<MemoryEstimate>& estimates) {
  const auto& model = question.model;
  auto list = nlohmann::ordered_json::array();
  for (const auto& estimate : estimates) {
    list.push_back({{"dtype", estimate.dtype},
                    {"context", estimate.context},
                    {"memory", memory_json(estimate.memory)}});
  }
  auto json = verdict_json(model, question.machine, plan);
  json.update(nlohmann::ordered_json{{"family", model.shape.family},
                                     {"layers", model.shape.layers.size()},
                                     {"weights", weights_json(model)},
                                     {"workload", workload_json(plan.workload)},
                                     {"estimates", std::move(list)}});
  return json;
}

Result<int> run_estimate(const CommandContext& context) {
  const auto& arguments = context.arguments;
  const auto found = MUSTER_TRY(find_and_describe(arguments.positionals.front()));
  const auto asked = MUSTER_TRY(workload_of(arguments, found.model.shape.kind));
  const auto chosen = MUSTER_TRY(
      choose_machine(arguments.value("--machine").value_or("here"), context.config, context.clock));
  if (!chosen.lost_gpus.empty()) say(Tone::Warning, chosen.lost_gpus, context.color);
  Question question{found.model, chosen.machine, {}};
  auto& workload = question.request.workload = asked;
  // Where the model states no length of its own.
  if (workload.context == 0 && usual_context(found.model) == 0) workload.context = 2048;
  const auto plan = MUSTER_TRY(make_plan(found.model, chosen.machine, question.request));
  const auto estimates = MUSTER_TRY(estimates_of(question, asked));
  if (arguments.has("--json")) {
    MUSTER_TRY(context.output.append(estimate_json(question, plan, estimates).dump(2) + "\n"));
    return 0;
  }
  const auto terminal = context.terminal(STDOUT_FILENO);
  MUSTER_TRY(context.output.append(estimate_text(question, plan, estimates, terminal)));
  if (!arguments.has("--explain")) return 0;
  const auto memory = MUSTER_TRY(whole_copy_memory(found.model, chosen.machine, question.request));
  MUSTER_TRY(
      context.output.append(explanation_text(question, plan.workload, memory, terminal.width)));
  return 0;
}

}  // namespace

Command estimate_command() { return {estimate_spec(), run_estimate}; }

}  // namespace muster
