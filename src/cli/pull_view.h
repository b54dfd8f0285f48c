#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hub/pull.h"
#include "terminal/progress.h"

namespace muster {

/// What the bar of a pull shows.
ProgressReading pull_reading(const PullProgress& progress);

/// The files of a plan with their sizes, and what is still to fetch. Threads: pure.
std::string describe_pull_plan(const PullPlan& plan, const TerminalInfo& terminal);

/// "fetched 3 files, 91.6 MB of 91.6 MB over the network"; "already here: 3 files, 91.6 MB".
std::string describe_pull_end(const PullPlan& plan, std::uint64_t received);

/// A plan, or with `received` a finished pull, as a JSON object and a line end.
///
/// received: bytes over the network; nullptr for a plan that only is shown.
std::string pull_json(const PullPlan& plan, const std::uint64_t* received);

}  // namespace muster
