#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "coordinator/load_trial.h"
#include "spec/serving.h"

namespace muster {

/// What batches cost on each worker group, and how large they may be, as it is learnt from the work
/// in flight: InFlightWork, or a test's fake.
///
/// Threads: owned by the fleet's loop.
class BatchCosts {
 public:
  virtual ~BatchCosts() = default;

  /// What a batch of so many tokens is predicted to take; nullopt before the group's first one.
  virtual std::optional<Duration> predict(std::size_t group, ModelId model,
                                          std::uint64_t token_count) const = 0;

  /// The largest batch that the group is given, in tokens.
  virtual std::uint64_t token_budget(std::size_t group) const = 0;

  /// A trial has measured what a batch costs: it counts as one that was served.
  virtual void calibrate(std::size_t group, ModelId model, const LoadTrial::Measure& measure) = 0;

  /// A batch of so many tokens did not fit into the group's memory.
  virtual void on_out_of_memory(std::size_t group, std::uint64_t token_count) = 0;
};

}  // namespace muster
