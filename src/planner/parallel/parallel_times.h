#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/memory/memory_model.h"
#include "spec/machine.h"
#include "spec/model_weights.h"
#include "spec/workload.h"

namespace muster {

/// What a step of the pipeline computes.
enum class StepKind : std::uint8_t {
  Prefill,  // the tokens of all sequences at once, as embedding does too
  Decode,   // one token of each sequence
  Train,    // forward and backward: three times the products of Prefill
};

/// Embed: Prefill. Generate: Decode, where nearly all its time goes. Train: Train.
StepKind usual_step(const Workload& workload);

/// Work of one unit in one step on one of `tensor_parallel` devices.
struct UnitWork {
  double flops = 0.0;
  double bytes = 0.0;            // of weights and cache read
  double exchanged_bytes = 0.0;  // that all-reduces sum over the devices; 0 without cutting
};

/// The work of every unit. `memory`: of `unit_memory` with the same arguments.
///
///   products: 2 x parameters used x tokens; scores and their sums: 2 x tokens x keys x heads x
///   (key size + value size), half of it where tokens attend only backwards; keys of one layer: at
///   most its window. A mixture reads the experts that its tokens choose, at most all.
///   exchanged: 2 all-reduces of tokens x hidden a block.
///
/// Source: Kaplan et al. 2020 (arXiv 2001.08361), section 2.1 (2 N a token); Shoeybi et al. 2019
/// (arXiv 1909.08053), section 3 (two all-reduces a block); Korthikanti et al. 2022 (arXiv
/// 2205.05198), appendix A (attention).
std::vector<UnitWork> unit_work(const ModelDescription& model, const Workload& workload,
                                std::span<const UnitMemory> memory, StepKind step,
                                std::uint32_t tensor_parallel);

/// Roofline time of work on a class: max(flops / peak, bytes / bandwidth), plus the all-reduces
/// over the links of the group. nullopt where the class has no known speed.
///
/// `group_bytes_per_second`: the least between two devices of the group; not read for one device.
/// Source: Williams, Waterman, Patterson 2009 (roofline).
std::optional<double> unit_seconds(const UnitWork& work, const DeviceClass& device_class,
                                   std::uint32_t tensor_parallel, double group_bytes_per_second);

/// A ring all-reduce of `bytes` over `count` devices.
///
///   base + 2 (n - 1) hops + 2 (n - 1) / n x bytes / bandwidth
///
/// Source: NCCL, src/graph/tuning.cc (01afd20a), the ring with protocol LL: base 3.6 us, a hop over
/// NVLink 0.5 us.
double all_reduce_seconds(double bytes, std::uint32_t count, double bytes_per_second);

/// Handing the activations of a step to the next stage: tokens x hidden.
double cut_seconds(const ModelDescription& model, const Workload& workload, StepKind step,
                   double bytes_per_second);

}  // namespace muster
