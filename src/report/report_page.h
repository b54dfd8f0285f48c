#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/statistics/comparison.h"
#include "report/power_recording.h"
#include "report/report_result.h"

namespace muster {

/// The most bytes that a report has: it is mailed, and opened on a phone.
inline constexpr std::size_t kReportBytesMost = 500'000;

/// What a report is made of.
struct ReportInput {
  std::string title = {};  // text, cut where it is long
  std::string build = {};  // of the muster that makes it
  std::vector<ReportResult> results = {};
  std::vector<PowerRecording> recordings = {};
  ComparisonRule rule = {};  // of the verdicts
};

/// One HTML page without scripts, and without anything that a browser would fetch: verdicts,
/// tables, and plots as SVG. A section that would take it over kReportBytesMost is left out, and
/// the page says how many are; its tables of all loads and points are always whole.
///
/// Errors: ResourceExhausted (those tables alone are too long). Threads: pure.
Result<std::string> report_page(const ReportInput& input);

/// Whether a file that begins so is such a page. Threads: pure.
bool is_report_head(std::string_view head);

}  // namespace muster
