#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "planner/memory/memory_dtype.h"
#include "spec/generation.h"
#include "spec/model_weights.h"
#include "spec/workload.h"

namespace muster {

/// A workload with its defaults filled in for a model.
struct MemoryDemand {
  MemoryDemand(const ModelDescription& of_model, const Workload& of_workload)
      : model(of_model), workload(of_workload) {}

  const ModelDescription& model;
  const Workload& workload;
  std::uint64_t context = 0;                          // T
  std::uint64_t step_tokens = 0;                      // S
  std::uint32_t element_bytes = 2;                    // of activations
  std::optional<std::uint32_t> weight_element_bytes;  // nullopt: as stored
  CacheFormat cache_format;
  std::uint32_t tensor_parallel = 1;
  std::uint32_t lanes = 1;
  bool is_gpu = true;
  bool is_engine_encoder = false;  // Embed, with an encoder that the engine computes
  bool is_int8_encoder = false;    // such a one, with weights of 8 bits: on a CPU
  /// Generate, with a decoder that the engine computes on a CPU: in these numbers.
  std::optional<DecoderPrecision> cpu_decoder;
};

/// Where a model is to run, as far as memory cares.
struct MemoryPlace {
  std::uint32_t tensor_parallel = 1;
  std::uint32_t lanes = 1;
  bool is_gpu = true;
};

/// Errors: as `stage_memory`.
Result<MemoryDemand> resolve_demand(const ModelDescription& model, const Workload& workload,
                                    const MemoryPlace& place);

/// One unit, each part by itself.
struct UnitParts {
  std::uint64_t weights = 0;
  std::uint64_t kv_cache = 0;
  std::uint64_t gradients = 0;
  std::uint64_t optimizer = 0;
  std::uint64_t kept = 0;         // Train: activations kept for the backward pass
  std::uint64_t activations = 0;  // alive while the unit runs, logits excluded
  std::uint64_t logits = 0;       // alive while the unit runs

  std::uint64_t peak() const;
};

/// Of every unit of the chain.
std::vector<UnitParts> unit_parts(const MemoryDemand& demand);

/// Of the tied matrix that a head without its embedding copies; all 0 where there is none, or where
/// the head's unit has it.
UnitParts tied_copy_parts(const MemoryDemand& demand);

}  // namespace muster
