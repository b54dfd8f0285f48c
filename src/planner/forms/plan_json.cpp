// The top-level fields of a plan are always there, null where they do not apply, so that programs
// need not test for one before they read it; only the explanation is on request. The fields are
// described in docs/formats/plan.md. Modules are named by stage, which makes a plan readable
// without the model's own files.

#include "planner/forms/plan_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_values.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

std::string_view unit_kind_name(UnitKind kind) {
  switch (kind) {
    case UnitKind::Embedding:
      return "embedding";
    case UnitKind::Block:
      return "block";
    case UnitKind::Head:
      return "head";
  }
  return "";
}

Json stage_json(const ModelDescription& model, const Machine& machine, const PlannedStage& stage,
                bool explain) {
  auto devices = Json::array();
  for (const auto device : stage.devices) devices.push_back(machine.devices[device].name());
  if (stage.place == PlanPlace::Host) devices.push_back("cpu");
  if (stage.place == PlanPlace::Disk) devices.push_back("disk");
  auto modules = Json::array();
  for (auto i = stage.first_unit; i < stage.last_unit; ++i) {
    for (const auto& module : model.units[i].modules) modules.push_back(module);
  }
  Json json{{"devices", std::move(devices)},
            {"first_unit", model.units[stage.first_unit].name},
            {"last_unit", model.units[stage.last_unit - 1].name},
            {"unit_count", stage.last_unit - stage.first_unit},
            {"memory_per_device", memory_json(stage.memory)},
            {"usable_bytes", stage.budget_bytes},
            {"margin_bytes", stage.margin_bytes},
            {"step_seconds", or_null(stage.step_seconds)},
            {"modules", std::move(modules)}};
  if (explain) json["why"] = stage.why;
  return json;
}

Json copies_json(const ModelDescription& model, const Machine& machine, const Plan& plan,
                 bool explain) {
  auto copies = Json::array();
  for (const auto& copy : plan.copies) {
    auto stages = Json::array();
    for (const auto& stage : copy.stages)
      stages.push_back(stage_json(model, machine, stage, explain));
    copies.push_back({{"stages", std::move(stages)}});
  }
  return copies;
}

Json explanation_json(const ModelDescription& model, const Workload& workload, bool is_gpu) {
  auto parts = Json::array();
  for (const auto& part : explain_memory(model, workload, is_gpu)) {
    parts.push_back({{"part", part.part},
                     {"formula", part.formula},
                     {"source", part.source},
                     {"bound", part.bound}});
  }
  return parts;
}

}  // namespace

std::string_view training_precision_name(TrainingPrecision precision) {
  switch (precision) {
    case TrainingPrecision::Fp32:
      return "fp32";
    case TrainingPrecision::Mixed:
      return "mixed";
    case TrainingPrecision::MixedFp32Grad:
      return "mixed-fp32-grad";
    case TrainingPrecision::Bf16:
      return "bf16";
  }
  return "";
}

std::string_view plan_task_name(PlanTask task) {
  switch (task) {
    case PlanTask::Embed:
      return "embed";
    case PlanTask::Generate:
      return "generate";
    case PlanTask::Train:
      return "train";
  }
  return "";
}

Json memory_json(const MemoryParts& memory) {
  return {{"weights", memory.weights},
          {"kv_cache", memory.kv_cache},
          {"activations", memory.activations},
          {"logits", memory.logits},
          {"gradients", memory.gradients},
          {"optimizer", memory.optimizer},
          {"workspace", memory.workspace},
          {"context", memory.context},
          {"total", memory.total()}};
}

std::uint64_t part_bytes(const MemoryParts& memory, std::string_view part) {
  const auto parts = memory_json(memory);
  const auto found = parts.find(part);
  return found == parts.end() ? 0 : found->get<std::uint64_t>();
}

Json weights_json(const ModelDescription& model) {
  auto units = Json::array();
  for (const auto& unit : model.units) {
    units.push_back({{"name", unit.name},
                     {"kind", unit_kind_name(unit.kind)},
                     {"stored_bytes", unit.stored_bytes},
                     {"modules", unit.modules}});
  }
  return {{"source", model.weight_source == WeightSource::Headers ? "headers" : "config"},
          {"stored_bytes", model.stored_bytes()},
          {"tensors", model.tensors.size()},
          {"tied_bytes", model.tied_bytes},
          {"units", std::move(units)}};
}

Json workload_json(const Workload& workload) {
  Json json{{"task", plan_task_name(workload.task)},
            {"batch", workload.batch},
            {"context", workload.context},
            {"dtype", workload.dtype ? Json(*workload.dtype) : Json("as stored")}};
  if (workload.task == PlanTask::Generate) {
    json["kv_dtype"] = workload.kv_dtype;
    json["kv_block"] = workload.kv_block;
    json["prefill_tokens"] = workload.prefill_tokens;
    json["all_logits"] = workload.all_logits;
    json["math_attention"] = workload.math_attention;
  }
  if (workload.task == PlanTask::Train) {
    const auto& training = workload.training;
    json["training"] = {{"precision", training_precision_name(training.precision)},
                        {"zero_stage", training.zero_stage},
                        {"zero_ranks", training.data_parallel},
                        {"recompute", training.recompute},
                        {"math_attention", !training.flash_attention},
                        {"microbatches", training.microbatches}};
  }
  return json;
}

Json verdict_json(const ModelDescription& model, const Machine& machine, const Plan& plan) {
  return {{"verdict", fit_name(plan.verdict.fit)},
          {"fits", plan.verdict.fit == Fit::OnDevices},
          {"summary", plan.verdict.sentence},
          {"model", model.name},
          {"model_from", model.origin},
          {"machine", machine.name}};
}

Json plan_json(const ModelDescription& model, const Machine& machine, const Plan& plan,
               const PlanVerdict& verdict, bool explain) {
  auto json = verdict_json(model, machine, plan);
  json.update(Json{
      {"strategy", plan_strategy_name(plan.strategy)},
      {"objective", plan_objective_name(plan.objective)},
      {"workload", workload_json(plan.workload)},
      {"tensor_parallel", plan.tensor_parallel},
      {"pipeline_parallel", plan.pipeline_parallel},
      {"data_parallel", plan.copies.size()},
      {"part_size", plan.part_size},
      {"sequences_per_second", plan.is_timed ? Json(plan.sequences_per_second) : Json(nullptr)},
      {"step_seconds", plan.is_timed ? Json(plan.step_seconds) : Json(nullptr)},
      {"latency_seconds", plan.is_timed ? Json(plan.latency_seconds) : Json(nullptr)},
      {"bound_seconds", plan.is_timed ? Json(plan.bound_seconds) : Json(nullptr)},
      {"batch_max", or_null(plan.batch_max)},
      {"context_max", or_null(plan.context_max)},
      {"copies", copies_json(model, machine, plan, explain)},
      {"reasons", plan.reasons},
      {"missing", plan.missing}});
  json["next"] =
      plan.next ? Json{{"what", plan.next->what}, {"price", plan.next->price}} : Json(nullptr);
  json["runs_here"] = {{"verdict", verdict.runs_here}, {"because", verdict.because}};
  if (explain) {
    json["weights"] = weights_json(model);
    json["memory_model"] = explanation_json(model, plan.workload, computes_on_gpus(machine));
  }
  return json;
}

}  // namespace muster
