#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/child/child_server.h"
#include "bench/load/load_generator.h"
#include "bench/selftest/selftest.h"
#include "bench/statistics/queue_laws.h"

namespace muster {

/// The parts of run_selftest, for this folder only.
using SelftestChecks = Result<std::vector<SelftestCheck>>;
SelftestChecks selftest_queue(ServiceLaw law, const SelftestOptions& options);
SelftestChecks selftest_freeze(const SelftestOptions& options);
SelftestChecks selftest_rate(const SelftestOptions& options);
SelftestChecks selftest_intervals(const SelftestOptions& options);
SelftestChecks selftest_compare(const SelftestOptions& options);
SelftestChecks selftest_warm_up(const SelftestOptions& options);

/// Starts a null server with `flags` and loads it: GETs of "/". Errors: those of ChildServer and
/// run_load.
Result<TrialSamples> load_null_server(const SelftestOptions& options,
                                      const std::vector<std::string>& flags, LoadOptions load);

/// A closed loop of one client on a clock that is stepped from answer to answer: what a trial would
/// see of a server with these service times, without the machine. factor_at: of the service time at
/// a moment.
TrialSamples stepped_trial(ServiceTimes& services, double seconds,
                           const std::function<double(double)>& factor_at);

}  // namespace muster
