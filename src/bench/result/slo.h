#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// The figures of a trial by name, for objectives and comparisons: "latency_p99", "ttft_p50",
/// "error_rate", "throughput". Times are in seconds. A figure that the trial does not have (no
/// tokens, too few samples) is not in it.
using FigureMap = std::map<std::string, double, std::less<>>;

/// One condition of a service-level objective: "ttft_p99<500ms".
struct Objective {
  std::string figure;
  bool is_upper_limit = true;  // '<', else '>'
  double limit = 0;            // in the figure's unit: seconds, a share, or a number a second

  /// As it is written: "ttft_p99<500ms".
  std::string text;
};

/// The names that objectives know: a time (latency, service, ttft, tpot, itl) with a percentile
/// (p50, p90, p95, p99, p999) or mean; error_rate; throughput; token_throughput.
std::vector<std::string> objective_figures();

/// "ttft_p99<500ms,tpot_p50<50ms,error_rate<1%,throughput>100". Times want a unit (us, ms, s).
///
/// Errors: InvalidArgument, with the nearest name or the right form. Threads: pure.
Result<std::vector<Objective>> parse_objectives(std::string_view text);

/// How one objective came out.
struct ObjectiveResult {
  Objective objective;
  std::optional<double> value = {};  // nullopt: the trial does not have the figure
  bool is_met = false;
  std::string why_unknown = {};  // without a value: why, as words behind "not known"; may be empty

  bool is_missed() const { return value && !is_met; }
};

/// A figure that a trial does not have is not met, as nothing shows that it was, and not missed.
/// Threads: pure.
std::vector<ObjectiveResult> judge_objectives(const std::vector<Objective>& objectives,
                                              const FigureMap& figures);

/// The samples that a trial must have for a figure (`samples_needed`): 368 for "latency_p99"; 1 for
/// a mean; nullopt for what is no time. Threads: pure.
std::optional<std::uint64_t> samples_needed_of(std::string_view figure);

}  // namespace muster
