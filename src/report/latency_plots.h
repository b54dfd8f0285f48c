#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/report_result.h"

namespace muster {

/// One line of a plot of percentiles.
struct LatencyLine {
  std::string name = {};               // HTML
  std::vector<double> latencies = {};  // seconds, in any order
  /// Of the percentiles those whose interval is drawn; nullptr: none.
  const Distribution* intervals = nullptr;
};

/// The latencies that count: of answered requests that were meant to be sent after the warm-up, of
/// all trials. Threads: pure.
std::vector<double> counted_latencies(std::span<const ReportTrial> trials);

/// Latency by percentile, up to the largest sample of each line; the places of the percentiles are
/// by how few lie above them, as HdrHistogram draws them, so that a single slow answer in a million
/// can be seen. At most kPlotSeriesMost lines. Empty where no line has a sample.
///
/// caption: HTML. Threads: pure.
std::string percentile_figure(const std::string& id, std::string_view caption,
                              std::span<const LatencyLine> lines);

/// Latency of each request at its intended time, least to most of each column, with its median; the
/// requests that failed; the part that is counted. Several trials lie on one another, from the
/// start of each. Empty where the result has no samples. Threads: pure.
std::string latency_over_time_figure(const std::string& id, const ReportLoad& load);

}  // namespace muster
