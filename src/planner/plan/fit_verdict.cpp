// Whether a plan's model fits its machine, and by how much, in a sentence. A model with layers on
// disk counts as not fitting, though it has a plan. The sentence takes its figures from the plan
// itself and from the state that it was made from, so that it agrees with whatever else is shown of
// the plan.

#include "planner/plan/fit_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "planner/plan/plan_state.h"

namespace muster {
namespace {

// Weights of the first copy that lie in `place`.
std::uint64_t weights_in(const Plan& plan, PlanPlace place) {
  std::uint64_t bytes = 0;
  for (const auto& stage : plan.copies.front().stages) {
    if (stage.place == place) bytes += stage.memory.weights;
  }
  return bytes;
}

bool has_place(const Plan& plan, PlanPlace place) {
  const auto& stages = plan.copies.front().stages;
  return std::any_of(stages.begin(), stages.end(),
                     [place](const auto& stage) { return stage.place == place; });
}

Fit fit_of(const Plan& plan) {
  if (plan.copies.empty() || has_place(plan, PlanPlace::Disk)) return Fit::No;
  return has_place(plan, PlanPlace::Host) ? Fit::WithOffloading : Fit::OnDevices;
}

// "llama-3-70b needs 146 GB, the 2 devices of sim:2xT4 have 30.6 GB usable in all".
std::string demand_text(const PlanState& state) {
  const auto whole = state.whole_memory();
  const auto count = state.single_slots().size();
  const auto& machine = state.machine().name;
  const auto usable = human_bytes(state.usable_bytes());
  auto text = whole ? fmt::format("{} needs {}, ", state.model().name, human_bytes(whole->total()))
                    : std::string();
  if (count == 0) return text + fmt::format("{} has no device that can be used", machine);
  if (count == 1) return text + fmt::format("the device of {} has {} usable", machine, usable);
  return text + fmt::format("the {} devices of {} have {} usable in all", count, machine, usable);
}

// The fullest device, and of how many.
std::string use_text(const PlanState& state, const Plan& plan) {
  std::set<std::uint32_t> devices;
  std::set<std::pair<std::uint64_t, std::uint64_t>> uses;
  const PlannedStage* fullest = nullptr;
  const auto share = [](const PlannedStage& stage) {
    return static_cast<double>(stage.memory.total()) / static_cast<double>(stage.budget_bytes);
  };
  for (const auto& copy : plan.copies) {
    for (const auto& stage : copy.stages) {
      devices.insert(stage.devices.begin(), stage.devices.end());
      uses.emplace(stage.memory.total(), stage.budget_bytes);
      if (fullest == nullptr || share(stage) > share(*fullest)) fullest = &stage;
    }
  }
  const auto text = fmt::format("{} of {} usable on ", human_bytes(fullest->memory.total()),
                                human_bytes(fullest->budget_bytes));
  if (devices.size() == 1) return text + state.machine().devices[*devices.begin()].name();
  return text +
         fmt::format("{} of {} devices", uses.size() == 1 ? "each" : "the fullest", devices.size());
}

std::string shortage_text(const PlanState& state, const Plan& plan) {
  auto text = demand_text(state);
  if (plan.copies.empty()) {
    return plan.missing.empty() ? text : text + "; it would take " + plan.missing.front();
  }
  const auto on_host = weights_in(plan, PlanPlace::Host);
  const auto on_disk = weights_in(plan, PlanPlace::Disk);
  const auto* verb = has_place(plan, PlanPlace::Disk) ? "would lie" : "lie";
  if (on_host > 0) {
    text += fmt::format("; {} of weights {} in host memory", human_bytes(on_host), verb);
  }
  if (on_disk > 0) {
    text += on_host > 0 ? fmt::format(", {} on disk", human_bytes(on_disk))
                        : fmt::format("; {} of weights would lie on disk", human_bytes(on_disk));
  }
  return text;
}

}  // namespace

std::string_view fit_name(Fit fit) {
  switch (fit) {
    case Fit::OnDevices:
      return "fits";
    case Fit::WithOffloading:
      return "fits-with-offloading";
    case Fit::No:
      return "does-not-fit";
  }
  return "";
}

std::string_view fit_words(Fit fit) {
  switch (fit) {
    case Fit::OnDevices:
      return "FITS";
    case Fit::WithOffloading:
      return "FITS ONLY WITH OFFLOADING";
    case Fit::No:
      return "DOES NOT FIT";
  }
  return "";
}

FitVerdict judge_fit(const PlanState& state, const Plan& plan) {
  FitVerdict verdict;
  verdict.fit = fit_of(plan);
  verdict.sentence = fmt::format(
      "{}: {}", fit_words(verdict.fit),
      verdict.fit == Fit::OnDevices ? use_text(state, plan) : shortage_text(state, plan));
  return verdict;
}

}  // namespace muster
