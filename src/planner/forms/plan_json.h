#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "planner/plan/plan.h"
#include "spec/machine.h"
#include "spec/model_weights.h"

namespace muster {

/// Whether a plan can be carried out by this program on the machine it runs on.
struct PlanVerdict {
  bool runs_here = false;
  std::string because;
};

/// {"weights", "kv_cache", …, "total"}, in bytes. The parts that do not apply are 0.
nlohmann::ordered_json memory_json(const MemoryParts& memory);

/// The bytes of a part by its name, as `memory_json` has it; 0 for another name.
std::uint64_t part_bytes(const MemoryParts& memory, std::string_view part);

/// {"source", "stored_bytes", "tensors", "units": [{"name", "kind", "stored_bytes", "modules"}]}.
nlohmann::ordered_json weights_json(const ModelDescription& model);

/// {"task", "batch", "context", …}: only what the task uses.
nlohmann::ordered_json workload_json(const Workload& workload);

/// The whole plan; the fields are described in docs/formats/plan.md.
nlohmann::ordered_json plan_json(const ModelDescription& model, const Machine& machine,
                                 const Plan& plan, const PlanVerdict& verdict, bool explain);

/// {"verdict", "fits", "summary", "model", "model_from", "machine"}: what `plan` and `estimate`
/// begin with. `fits` is true for a model that the devices hold without offloading.
nlohmann::ordered_json verdict_json(const ModelDescription& model, const Machine& machine,
                                    const Plan& plan);

/// "fp32", "mixed", "mixed-fp32-grad", "bf16".
std::string_view training_precision_name(TrainingPrecision precision);

/// "embed", "generate", "train".
std::string_view plan_task_name(PlanTask task);

}  // namespace muster
