#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/statistics/comparison.h"
#include "report/power_recording.h"
#include "report/report_result.h"

namespace muster {

// The sections of a report as HTML, each by itself; empty where there is nothing to show. Threads
// of all: pure.

/// Verdicts first: a paragraph for each result, then a row for each load of those that are no
/// points of a sweep.
std::string summary_section(std::span<const ReportResult> results);

/// The results that are compared: their figures side by side, load by load, their latencies in one
/// plot, and what `bench diff` says of the first and each other one.
std::string side_by_side_section(std::span<const ReportResult> results);
std::string latencies_section(std::span<const ReportResult> results);
std::string differences_section(std::span<const ReportResult> results, const ComparisonRule& rule);

/// Points of a sweep as a table, with their settings and joules.
std::string points_section(std::span<const ReportResult> results);

/// Throughput and p99 against what was swept: batch sizes, rates, clients.
std::string sweep_section(std::span<const ReportResult> results);

/// One load of a result: its tables and its plots. id: the only one of the page.
std::string load_section(const std::string& id, const ReportResult& result, const ReportLoad& load);

/// Power over time with the phases of its trials, or why it was not measured; joules with their
/// error.
std::string power_section(const std::string& id, const ReportResult& result,
                          std::span<const PowerRecording> recordings);

/// Where a result comes from: target, command, machine.
std::string origin_section(const ReportResult& result);

}  // namespace muster
