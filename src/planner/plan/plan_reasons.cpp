// Reasons are computed, not remembered: each sentence asks the placer or plans again, so it holds
// for the plan that is shown, whichever strategy made it. What is missing is found by bisection
// over more memory, a smaller batch and a shorter context, each with the others as they are. Every
// such probe is a whole placement, which is why this runs once, for the final plan.

#include "planner/plan/plan_reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "planner/plan/better_plan.h"
#include "planner/plan/plan_search.h"
#include "planner/plan/plan_strategies.h"

namespace muster {
namespace {

std::string load_text(const Workload& workload) {
  return fmt::format("{} sequence{} of {} tokens", with_thousands(workload.batch),
                     workload.batch == 1 ? "" : "s", with_thousands(workload.context));
}

std::string parts_text(const MemoryParts& parts) {
  std::string text;
  const auto add = [&text](std::uint64_t bytes, std::string_view name) {
    if (bytes == 0) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, human_bytes(bytes));
  };
  add(parts.weights, "weights");
  add(parts.kv_cache, "KV cache");
  add(parts.activations, "activations");
  add(parts.logits, "logits");
  add(parts.gradients, "gradients");
  add(parts.optimizer, "optimizer");
  add(parts.workspace + parts.context, "context and workspace");
  return text;
}

std::string device_text(const PlanState& state, const PlannedStage& stage) {
  if (stage.place == PlanPlace::Host) return "host memory";
  if (stage.place == PlanPlace::Disk) return "disk";
  std::string text;
  for (const auto device : stage.devices) {
    text += (text.empty() ? "" : "+") + state.machine().devices[device].name();
  }
  return text;
}

// Why a stage ends where it ends.
void add_stage_reasons(const PlanState& state, Plan& plan) {
  const auto placer = state.placer(plan.tensor_parallel, 1);
  if (!placer) return;
  for (auto& copy : plan.copies) {
    for (auto& stage : copy.stages) {
      if (!stage.why.empty()) continue;
      if (stage.last_unit == state.model().units.size()) {
        stage.why = "the end of the model";
        continue;
      }
      const auto with_next = placer->bytes_of(stage.first_unit, stage.last_unit + 1);
      const auto& next = state.model().units[stage.last_unit].name;
      stage.why = with_next > stage.budget_bytes
                      ? fmt::format("{} would need {} more than is left", next,
                                    human_bytes(with_next - stage.budget_bytes))
                      : fmt::format("{} fits too, but would make this the slowest stage", next);
    }
  }
}

// The upper end of the search is twice the whole model on each device: more would not help.
void add_missing(const PlanState& state, Plan& plan) {
  const auto whole = state.whole_memory();
  if (!whole) return;
  const auto count = state.single_slots().size();
  plan.reasons.push_back(fmt::format("the model needs {} with {}: {}", human_bytes(whole->total()),
                                     load_text(plan.workload), parts_text(*whole)));
  plan.reasons.push_back(fmt::format("{} device{} of {} can be used, {} in all, the largest {}",
                                     count, count == 1 ? "" : "s", state.machine().name,
                                     human_bytes(state.usable_bytes()),
                                     human_bytes(state.largest_usable_bytes())));
  const auto extra = least_extra(2 * whole->total(), [&](std::uint64_t bytes) {
    const auto larger = plan_by_strategy(state.with_extra(bytes));
    return larger && !larger->copies.empty();
  });
  if (extra && count > 0) {
    plan.missing.push_back(fmt::format("{} more on {}", human_bytes(*extra),
                                       count == 1 ? "the device" : "each device"));
  }
  const auto fits_with = [&](const Workload& workload) {
    const auto smaller = plan_by_strategy(state.with_workload(workload));
    return smaller && !smaller->copies.empty();
  };
  if (plan.workload.batch > 1) {
    const auto batch = largest_that_fits(1, plan.workload.batch, [&](std::uint32_t value) {
      auto workload = plan.workload;
      workload.batch = value;
      return fits_with(workload);
    });
    if (batch) plan.missing.push_back(fmt::format("or a batch of {}", with_thousands(*batch)));
  }
  const auto context = largest_that_fits(1, plan.workload.context, [&](std::uint32_t value) {
    auto workload = plan.workload;
    workload.context = value;
    return fits_with(workload);
  });
  if (context) {
    plan.missing.push_back(fmt::format("or a context of {} tokens", with_thousands(*context)));
  }
}

std::string speed_reason(const PlanState& state, const Plan& plan) {
  if (!plan.is_timed) {
    return fmt::format("the speed of {} is not known: layers are shared out by bytes",
                       state.unknown_speed().value_or("the places off the devices"));
  }
  auto text = fmt::format("the slowest stage takes {} for {}", duration_text(plan.step_seconds),
                          plan.part_size == 1 ? std::string("one sequence")
                                              : fmt::format("{} sequences", plan.part_size));
  if (plan.bound_seconds > 0.0 && plan.pipeline_parallel > 1) {
    text += fmt::format(" (no cut over these devices has less than {})",
                        duration_text(plan.bound_seconds));
  }
  return text + fmt::format(", all of them {}: {} in all, predicted from data sheets",
                            duration_text(plan.latency_seconds), rate_text(plan));
}

void add_why(const PlanState& state, Plan& plan) {
  const auto& first = plan.copies.front();
  if (const auto whole = state.whole_memory()) {
    plan.reasons.push_back(fmt::format("one copy takes {} with {}: {}", human_bytes(whole->total()),
                                       load_text(plan.workload), parts_text(*whole)));
  }
  if (const auto bytes = off_device_bytes(plan)) {
    plan.reasons.push_back(fmt::format(
        "{} of weights are off the devices: no placement on those of {} holds the model",
        human_bytes(bytes), state.machine().name));
  } else if (first.stages.size() == 1 && plan.tensor_parallel == 1) {
    plan.reasons.push_back(fmt::format(
        "{} holds it whole, {} of {} usable; {}", device_text(state, first.stages.front()),
        human_bytes(first.stages.front().memory.total()),
        human_bytes(first.stages.front().budget_bytes), copies_text(plan)));
  } else {
    plan.reasons.push_back(copies_text(plan));
  }
  plan.reasons.push_back(speed_reason(state, plan));
}

}  // namespace

void add_reasons(const PlanState& state, Plan& plan) {
  if (!plan.is_placed()) {
    add_missing(state, plan);
    return;
  }
  add_why(state, plan);
  add_stage_reasons(state, plan);
  plan.next = next_better_plan(state, plan);
}

}  // namespace muster
