#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/report_result.h"

namespace muster {

/// Times with p50 as given, a mean of 1.5 of it, a p90, p95 and p99 of 2, 3 and 4, at most 9. The
/// intervals lie 5 % to both sides; the upper end of p99 is not known, and p99.9 is not.
Distribution made_distribution(double p50);

/// A trial of `count` answers, 10 ms apart, of `latency` seconds each, at 100 a second.
ReportTrial made_trial(std::size_t count, double latency);

/// A result of one load, "poisson 100/s".
ReportResult made_result(const std::string& name, std::vector<ReportTrial> trials);

/// A point of a sweep, of one trial.
ReportResult made_point(const std::string& name, const std::string& batch_size,
                        const std::string& dtype, double prompts_per_second);

}  // namespace muster
