// The rule that everything else rests on: what lasts adds up over the units of a stage, while of
// what lives for a step only the largest unit's counts, as a stage computes one unit at a time. So
// a stage is a sum plus a maximum, and a planner can cut a chain without asking again. The
// whole-model and the unit-wise questions use the same parts and so agree to the byte.

#include "planner/memory/memory_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/memory/memory_arithmetic.h"
#include "planner/memory/memory_unit.h"
#include "spec/row_blocks.h"

namespace muster {
namespace {

// cuBLAS's workspace of one handle and stream, the largest of the generations: 32 MiB on Hopper,
// 8,519,680 bytes before it; and the 1 MiB of cuBLASLt.
// Source: torch 2.11, aten/src/ATen/cuda/CublasHandlePool.cpp (parseChosenWorkspaceSize) and
// CUDABlas.cpp (_parseChosenWorkspaceSize).
constexpr std::uint64_t kWorkspaceBytes = (std::uint64_t{32} + 1) << 20;

// The driver's context and loaded kernels, before a calibration on the machine itself: the least
// that ollama sets aside for a CUDA device. Source: ollama, discover/gpu.go, cudaMinimumMemory.
constexpr std::uint64_t kContextBytes = std::uint64_t{457} << 20;

bool has_kind(const ModelDescription& model, const StageShare& share, UnitKind kind) {
  const auto begin = model.units.begin();
  return std::any_of(begin + share.first_unit, begin + share.last_unit,
                     [kind](const ModelUnit& unit) { return unit.kind == kind; });
}

MemoryPlace place_of(const StageShare& share) {
  return {.tensor_parallel = share.tensor_parallel, .lanes = share.lanes, .is_gpu = share.is_gpu};
}

std::uint64_t states_of(const UnitParts& parts) {
  return add_bytes(parts.gradients, parts.optimizer);
}

void add_lasting(MemoryParts& sum, const UnitParts& unit) {
  sum.weights = add_bytes(sum.weights, unit.weights);
  sum.kv_cache = add_bytes(sum.kv_cache, unit.kv_cache);
  sum.gradients = add_bytes(sum.gradients, unit.gradients);
  sum.optimizer = add_bytes(sum.optimizer, unit.optimizer);
  sum.activations = add_bytes(sum.activations, unit.kept);
}

}  // namespace

std::uint64_t MemoryParts::total() const {
  return add_bytes(weights, kv_cache, activations, logits, gradients, optimizer, workspace,
                   context);
}

Result<MemoryParts> stage_memory(const ModelDescription& model, const Workload& workload,
                                 const StageShare& share) {
  if (share.first_unit >= share.last_unit || share.last_unit > model.units.size()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("a stage is a range of the {} units: {} to {}", model.units.size(),
                             share.first_unit, share.last_unit)};
  }
  const auto demand = MUSTER_TRY(resolve_demand(model, workload, place_of(share)));
  const auto units = unit_parts(demand);
  auto sum = fixed_memory(workload, share.is_gpu);
  const UnitParts* largest = &units[share.first_unit];
  for (auto i = share.first_unit; i < share.last_unit; ++i) {
    add_lasting(sum, units[i]);
    if (units[i].peak() > largest->peak()) largest = &units[i];
  }
  sum.activations = add_bytes(sum.activations, largest->activations);
  sum.logits = largest->logits;
  if (has_kind(model, share, UnitKind::Head) && !has_kind(model, share, UnitKind::Embedding)) {
    add_lasting(sum, tied_copy_parts(demand));
  }
  return sum;
}

Result<std::vector<UnitMemory>> unit_memory(const ModelDescription& model, const Workload& workload,
                                            std::uint32_t tensor_parallel, bool is_gpu,
                                            std::uint32_t lanes) {
  const auto demand = MUSTER_TRY(resolve_demand(
      model, workload, {.tensor_parallel = tensor_parallel, .lanes = lanes, .is_gpu = is_gpu}));
  std::vector<UnitMemory> result;
  for (const auto& parts : unit_parts(demand)) {
    result.push_back({.weights = parts.weights,
                      .kv_cache = parts.kv_cache,
                      .states = states_of(parts),
                      .kept = parts.kept,
                      .peak = parts.peak()});
  }
  return result;
}

Result<std::uint64_t> tied_copy_bytes(const ModelDescription& model, const Workload& workload,
                                      std::uint32_t tensor_parallel, bool is_gpu) {
  const auto demand = MUSTER_TRY(
      resolve_demand(model, workload, {.tensor_parallel = tensor_parallel, .is_gpu = is_gpu}));
  const auto parts = tied_copy_parts(demand);
  return add_bytes(parts.weights, states_of(parts));
}

std::uint32_t usual_context(const ModelDescription& model) {
  return model.text_length > 0 ? model.text_length : model.shape.length_max;
}

MemoryParts fixed_memory(const Workload& workload, bool is_gpu) {
  MemoryParts parts;
  if (!is_gpu) return parts;
  // An encoder's lanes have a stream each, and its weights were tested on another.
  const bool is_encoder = workload.task == PlanTask::Embed;
  parts.workspace = kWorkspaceBytes * (is_encoder ? kGpuLanes + 1 : 1);
  parts.context = kContextBytes;
  return parts;
}

}  // namespace muster
