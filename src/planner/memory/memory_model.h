#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/model_weights.h"
#include "spec/workload.h"

namespace muster {

/// Bytes on one device at the moment when the most is in use, each part by itself. A part that does
/// not apply, or that is not alive at that moment, is 0.
struct MemoryParts {
  std::uint64_t weights = 0;
  std::uint64_t kv_cache = 0;
  std::uint64_t activations = 0;  // the largest set alive at once, logits excluded
  std::uint64_t logits = 0;
  std::uint64_t gradients = 0;
  std::uint64_t optimizer = 0;  // moments and master weights
  std::uint64_t workspace = 0;  // of the matrix libraries
  std::uint64_t context = 0;    // driver context and loaded kernels

  std::uint64_t total() const;
};

/// Where a part's figure comes from and how far it can be off.
struct PartExplanation {
  std::string part;     // "kv_cache"
  std::string formula;  // with the symbols of docs/memory-model.md
  std::string source;   // paper and section, file and revision, or the measurement
  std::string bound;    // "exact", "<= 1 % (measured)", "provisional until generation runs"
};

/// A device's share of a model: the units [first, last) of the chain, cut `tensor_parallel` ways.
struct StageShare {
  std::uint32_t first_unit = 0;
  std::uint32_t last_unit = 0;
  std::uint32_t tensor_parallel = 1;
  bool is_gpu = true;       // adds workspace and context of a GPU
  std::uint32_t lanes = 1;  // CPU: Embed: batches that compute at once, one a core; Generate: cores
};

/// What the planner needs to know about one unit, so that a stage is a sum plus a maximum.
struct UnitMemory {
  std::uint64_t weights = 0;  // in the load dtype
  std::uint64_t kv_cache = 0;
  std::uint64_t states = 0;  // Train: gradients and optimizer
  std::uint64_t kept = 0;    // Train: activations kept for the backward pass
  std::uint64_t peak = 0;    // activations and logits alive while this unit runs
};

/// The memory of `share` under `workload`.
///
/// Errors: InvalidArgument (an unknown dtype, a batch of 0, a `tensor_parallel` that does not
/// divide the heads, a context beyond what the model allows, each by name), Unsupported (a task
/// that the kind of model cannot do). Threads: pure.
Result<MemoryParts> stage_memory(const ModelDescription& model, const Workload& workload,
                                 const StageShare& share);

/// Every unit by itself, as `stage_memory` adds them up:
/// total(first, last) = sum(weights + kv_cache + states + kept) + max(peak) + fixed parts
/// (+ tied_bytes where the head is without its embedding).
Result<std::vector<UnitMemory>> unit_memory(const ModelDescription& model, const Workload& workload,
                                            std::uint32_t tensor_parallel, bool is_gpu,
                                            std::uint32_t lanes = 1);

/// What a stage with the head and without the embedding holds more: a copy of the tied matrix, with
/// its states when training. 0 where the head is not tied, and for a decoder on a CPU, whose head
/// has a copy of its own wherever it is. Errors: those of `unit_memory`.
Result<std::uint64_t> tied_copy_bytes(const ModelDescription& model, const Workload& workload,
                                      std::uint32_t tensor_parallel, bool is_gpu);

/// The tokens of a sequence where a workload names none: what sentence-transformers cuts the
/// model's texts to, else the longest that the model was made for; 0 where neither is stated.
std::uint32_t usual_context(const ModelDescription& model);

/// Workspace and context of a stage, whatever its units.
MemoryParts fixed_memory(const Workload& workload, bool is_gpu);

/// The formula, source and bound of every part that `workload` uses. is_gpu: as of a stage.
std::vector<PartExplanation> explain_memory(const ModelDescription& model, const Workload& workload,
                                            bool is_gpu = true);

}  // namespace muster
