#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/result/bench_result.h"
#include "bench/result/result_diff.h"
#include "bench/statistics/percentile.h"

namespace muster {

/// One request, as far as it is drawn.
struct DrawnSample {
  double at = 0;                       // seconds from the start of the trial: its intended time
  std::optional<double> latency = {};  // seconds
  bool is_answered = false;
};

/// One kind of time: "latency".
struct ReportTimes {
  std::string title = {};   // as the terminal has it: "between pieces"
  std::string figure = {};  // as objectives have it: "itl"
  Distribution distribution = {};
};

/// What is shown of one trial. What a result does not hold is absent.
struct ReportTrial {
  std::optional<double> started_at = {};  // seconds since 1970
  bool is_valid = true;
  std::string lateness = {};  // of the generator: "send lag"
  std::optional<double> lateness_p99 = {};
  std::optional<double> lateness_limit = {};
  double warm_up_seconds = 0;
  double counted_seconds = 0;
  std::optional<bool> is_steady = {};
  std::optional<double> drift = {};
  bool has_kept_up = true;                         // also where the result does not say
  std::optional<std::uint64_t> warm_up_sent = {};  // not among the others
  std::optional<std::uint64_t> sent = {};
  std::optional<std::uint64_t> answered = {};
  std::vector<std::pair<std::string, std::uint64_t>> failed = {};  // by outcome
  std::uint64_t missed_at_end = 0;                                 // TrialSummary::missed_at_end
  std::optional<double> offered_per_second = {};
  std::optional<double> sent_per_second = {};
  std::optional<double> answered_per_second = {};
  std::vector<ReportTimes> times = {};  // those that it has
  std::optional<std::uint64_t> input_tokens = {};
  std::optional<std::uint64_t> output_tokens = {};
  std::optional<double> input_tokens_per_second = {};
  std::optional<double> output_tokens_per_second = {};
  std::string token_source = {};
  std::optional<TimeParts> parts = {};
  std::vector<StageTime> stages = {};
  StageDoubts stage_doubts = {};
  std::optional<double> others_share = {};
  std::optional<double> stolen_share = {};
  std::vector<std::string> problems = {};
  std::map<std::string, double, std::less<>> figures = {};  // by the names of objectives
  std::vector<DrawnSample> samples = {};                    // in the order of `at`
};

/// An objective and how it came out.
struct ReportObjective {
  std::string text = {};             // "latency_p99<50ms"
  std::optional<double> value = {};  // nullopt: not known, and neither met nor missed
  bool is_met = false;
  std::string why_unknown = {};
};

/// A load with its trials.
struct ReportLoad {
  std::string name = {};
  std::vector<ReportTrial> trials = {};
  std::vector<ReportObjective> objectives = {};
  /// Means over the trials; their ends are known of two trials and more.
  std::map<std::string, Estimate, std::less<>> over_trials = {};
};

/// What a point of `bench run` says beside its figures.
struct ReportRecord {
  std::string point = {};
  std::map<std::string, std::string, std::less<>> config = {};  // by column; lists with commas
  std::map<std::string, double, std::less<>> summary = {};      // its numbers
  std::map<std::string, double, std::less<>> energy = {};       // its numbers
  std::map<std::string, std::string, std::less<>> energy_words = {};  // its texts
  /// Of each GPU, "gpu_0", and of the CPUs, "cpu": numbers and texts by key.
  struct Device {
    std::string name = {};
    std::map<std::string, double, std::less<>> numbers = {};
    std::map<std::string, std::string, std::less<>> words = {};
  };
  std::vector<Device> devices = {};
};

/// A result of `muster bench`, as far as a report shows it.
struct ReportResult {
  std::string name = {};  // as the report calls it; text
  std::string api = {};
  std::string url = {};
  std::string model = {};
  std::string server = {};
  std::string build = {};
  std::vector<std::string> command = {};
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::optional<PeakResult> peak = {};
  std::vector<ReportLoad> loads = {};
  std::optional<ReportRecord> record = {};
  ResultFigures figures = {};  // what `bench diff` compares
  bool is_compared = true;     // with the other results; not so of the points in a folder
};

/// Reads a result that `result_json` wrote. A member of another type than the format says counts as
/// absent, and so does a number beyond 1e15, which nobody has measured.
///
/// name: how the report calls it, and for messages. Errors: those of read_result_figures. Cost:
/// about a microsecond a sample. Threads: pure.
Result<ReportResult> read_report_result(std::string_view json, std::string_view name);

}  // namespace muster
