#pragma once

#include <optional>
#include <string>

#include "bench/result/bench_result.h"

namespace muster {

/// Whether the server went away while it was measured: the last three requests of a trial, or all
/// of fewer, ended in a broken connection. What the trial's last new problem says, or nullopt.
///
/// Three in a row is what ai_energy_benchmarks gives up at. Threads: pure.
std::optional<std::string> lost_server(const BenchResult& result);

}  // namespace muster
