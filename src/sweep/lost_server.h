#pragma once

#include <functional>
#include <optional>
#include <string>

#include "bench/result/bench_result.h"

namespace muster {

/// Whether the server went away while it was measured: the last three requests of a trial, or all
/// of fewer, ended in a broken connection; or any request did, and the server does not answer now.
/// What the trial's last broken connection says, or nullopt.
///
/// answers: whether the server gives a sign of life; asked once at most, and only in that last
/// case. Three in a row is what ai_energy_benchmarks gives up at.
std::optional<std::string> lost_server(const BenchResult& result,
                                       const std::function<bool()>& answers);

}  // namespace muster
