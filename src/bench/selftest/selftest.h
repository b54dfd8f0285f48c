#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// One thing that the instrument was tried on.
struct SelftestCheck {
  std::string part;      // "queue"
  std::string what;      // "M/D/1 at load 0.8: p95"
  double value = 0;      // in the unit of `measured`
  std::string measured;  // "7.85 ms, 0.6 % from Lindley's 7.80 ms"
  std::string required;  // "1 % or 0.3 ms"
  bool is_met = true;
};

struct SelftestOptions {
  std::string null_server;  // the program
  bool is_full = false;     // as many requests and runs as the project's own promises ask for
  std::uint64_t seed = 1;
  std::function<bool()> is_cancelled = [] { return false; };
  std::function<void(std::string_view)> on_step = [](std::string_view) {};  // what is tried next
};

/// The parts, in the order in which they are run.
///
/// - "queue": Poisson arrivals at M/D/1 and M/M/1 queues at loads 0.5, 0.8 and 0.95; percentiles of
///   the latency against Lindley's recursion over the same arrivals and service times, and the
///   closed forms against the printed intervals. "queue-d" and "queue-m" are its halves.
/// - "freeze": a server that stands still for a second; what intended times show and service times
///   hide.
/// - "rate": 5,000 requests a second, alone and beside busy threads.
/// - "intervals": how often the interval of the 95th percentile holds the true one.
/// - "compare": equal and unequal pairs of simulated trials, through the comparison of results.
/// - "warm-up": simulated ramps of ten seconds, and what their cut costs.
std::span<const std::string_view> selftest_parts();

/// Errors: InvalidArgument (no such part), with the nearest one. Threads: pure.
Status check_selftest_part(std::string_view part);

/// Errors: InvalidArgument (no such part), those of starting and asking the null server, Cancelled.
Result<std::vector<SelftestCheck>> run_selftest(std::string_view part,
                                                const SelftestOptions& options);

}  // namespace muster
