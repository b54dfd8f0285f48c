// The order of one planning run. Requests that no strategy can meet are refused first, so that the
// strategies need no checks of their own. Memory is filled in only for the plan that is kept: a
// search may make thousands of copies. The reasons come after the times that they quote, and the
// verdict comes last.

#include "planner/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"
#include "planner/plan/plan_limits.h"
#include "planner/plan/plan_reasons.h"
#include "planner/plan/plan_state.h"
#include "planner/plan/plan_strategies.h"

namespace muster {
namespace {

constexpr std::array<std::pair<PlanStrategy, std::string_view>, 6> kStrategies{{
    {PlanStrategy::Auto, "auto"},
    {PlanStrategy::Balanced, "balanced"},
    {PlanStrategy::BalancedLow0, "balanced_low_0"},
    {PlanStrategy::Sequential, "sequential"},
    {PlanStrategy::Custom, "custom"},
    {PlanStrategy::Replicate, "replicate"},
}};

constexpr std::array<std::pair<PlanObjective, std::string_view>, 3> kObjectives{{
    {PlanObjective::Throughput, "throughput"},
    {PlanObjective::Latency, "latency"},
    {PlanObjective::FewestDevices, "fewest-devices"},
}};

Status check_stage_layers(const ModelDescription& model, const PlanRequest& request) {
  const auto& layers = request.stage_layers;
  if (layers.empty()) return Done{};
  const auto sum = std::accumulate(layers.begin(), layers.end(), std::size_t{0});
  if (sum != model.shape.layers.size()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("stages of {} layers have {} in all, and {} has {}",
                             fmt::join(layers, ","), sum, model.name, model.shape.layers.size())};
  }
  if (request.pipeline_parallel && *request.pipeline_parallel != layers.size()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("stages of {} layers are {} stages, and {} are asked for",
                             fmt::join(layers, ","), layers.size(), *request.pipeline_parallel)};
  }
  return Done{};
}

// Checks what no strategy can use, so that each strategy need not.
Status check_request(const ModelDescription& model, const PlanRequest& request) {
  const bool is_degree_asked = request.tensor_parallel || request.pipeline_parallel ||
                               request.data_parallel || !request.stage_layers.empty();
  if (is_degree_asked && request.strategy != PlanStrategy::Auto) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("a degree of parallelism goes with the strategy auto only: the "
                             "strategy is {}",
                             plan_strategy_name(request.strategy))};
  }
  if (request.strategy == PlanStrategy::Custom && request.custom_map.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 "the strategy custom wants a map from modules to devices"};
  }
  if (request.strategy != PlanStrategy::Custom && !request.custom_map.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("a map goes with the strategy custom only: the strategy is {}",
                             plan_strategy_name(request.strategy))};
  }
  MUSTER_TRY(check_stage_layers(model, request));
  const bool is_encoder = model.shape.kind == ModelKind::Encoder;
  if (is_encoder && request.workload.task == PlanTask::Generate) {
    return Error{
        ErrorKind::Unsupported,
        fmt::format("{} is an encoder and generates nothing: use --task embed", model.name)};
  }
  if (model.units.empty()) {
    return Error{ErrorKind::InvalidArgument, fmt::format("{} has no weights to place", model.name)};
  }
  return Done{};
}

Result<Workload> resolved(const ModelDescription& model, Workload workload) {
  if (workload.context == 0) workload.context = usual_context(model);
  if (workload.context == 0) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} states no length of its own: say --context", model.name)};
  }
  return workload;
}

}  // namespace

std::string_view plan_strategy_name(PlanStrategy strategy) {
  for (const auto& [value, name] : kStrategies) {
    if (value == strategy) return name;
  }
  return "";
}

std::string_view plan_objective_name(PlanObjective objective) {
  for (const auto& [value, name] : kObjectives) {
    if (value == objective) return name;
  }
  return "";
}

PlanMargin default_margin(const ModelDescription& model, const Workload& workload) {
  // An encoder's memory is checked against the running worker to 1 %; the other formulas are
  // provisional until this program generates and trains, and the best published predictors of a
  // decoder's memory are off by 3 to 5 %.
  // Source: tools/accept/plan row 6; LLMem (arXiv 2404.10933, table 3: 1.6 % on one GPU, 3.0 % on
  // several).
  const bool is_checked =
      model.shape.kind == ModelKind::Encoder && workload.task == PlanTask::Embed;
  return {.share = is_checked ? 0.01 : 0.05, .bytes = 0};
}

Result<Plan> make_plan(const ModelDescription& model, const Machine& machine,
                       const PlanRequest& request) {
  MUSTER_TRY(check_request(model, request));
  const auto workload = MUSTER_TRY(resolved(model, request.workload));
  const auto state = MUSTER_TRY(PlanState::create(model, machine, request, workload));
  auto plan = MUSTER_TRY(plan_by_strategy(state));
  MUSTER_TRY(state.add_memory(plan));
  state.add_times(plan);
  if (plan.is_placed()) add_limits(state, plan);
  add_reasons(state, plan);
  plan.verdict = judge_fit(state, plan);
  return plan;
}

Result<MemoryParts> whole_copy_memory(const ModelDescription& model, const Machine& machine,
                                      const PlanRequest& request) {
  MUSTER_TRY(check_request(model, request));
  const auto workload = MUSTER_TRY(resolved(model, request.workload));
  const auto state = MUSTER_TRY(PlanState::create(model, machine, request, workload));
  const auto memory = state.whole_memory();
  MUSTER_CHECK(memory.has_value());  // what the memory model refuses, create() has refused
  return *memory;
}

}  // namespace muster
