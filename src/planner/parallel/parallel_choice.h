#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "planner/parallel/parallel_degree.h"
#include "planner/parallel/parallel_times.h"
#include "spec/machine.h"
#include "spec/model_weights.h"
#include "spec/workload.h"

namespace muster {

/// Equal devices on which as much of a model's work as possible is to be done.
struct ParallelQuestion {
  const ModelDescription& model;
  const Workload& workload;
  const Machine& machine;
  std::span<const std::uint32_t> devices;  // into Machine::devices, all of one class
  std::uint64_t usable_bytes = 0;          // on each, margin already taken off
};

/// One way to use them: `data` copies, each of `pipeline` stages on groups of `tensor` devices.
struct ParallelChoice {
  std::uint32_t tensor = 1;
  std::uint32_t pipeline = 1;
  std::uint32_t data = 1;
  double step_seconds = 0.0;      // the slowest stage with its cut; without known speeds: bytes
  double steps_per_second = 0.0;  // of all copies together
};

/// Every legal T x P x D whose copies fit, the most steps a second first; of equal ones fewer
/// devices, then the smaller T. For each T and D the deepest pipeline that there are groups for.
///
/// `is_timed` is false where the class has no known speed: then the slowest stage is the one with
/// most bytes, and steps a second only compare copies of equal depth.
struct ParallelSweep {
  bool is_timed = true;
  std::vector<ParallelChoice> choices;
};

/// Cost: for each T at most 2 sqrt(groups) numbers of copies, O(L log(1 / eps)) each.
/// Errors: those of `unit_memory`. Threads: pure.
Result<ParallelSweep> parallel_choices(const ParallelQuestion& question);

}  // namespace muster
