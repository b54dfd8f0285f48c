#pragma once

#include <functional>
#include <optional>

#include "base/result.h"
#include "bench/load/load_generator.h"

namespace muster {

struct WatchedTrial {
  TrialSamples samples;
  std::optional<double> stolen_share;  // of all CPUs, meanwhile; nullopt: the system does not tell
};

/// A virtual machine of which the hypervisor stops a processor for 50 ms delays 0.1 % of the
/// requests of a trial of 50 s, and with them its 99th percentile: what the instrument did wrong is
/// seen only where it was let run. So a trial is made again where more than 0.05 % of the processor
/// time went to others, up to three trials in all, and the one that lost least is returned; nobody
/// looks at its figures before.
///
/// on_again: called before each further trial with the share that the last one lost. Errors: those
/// of `run`.
Result<TrialSamples> quietest_trial(const std::function<Result<WatchedTrial>()>& run,
                                    const std::function<void(double)>& on_again);

}  // namespace muster
