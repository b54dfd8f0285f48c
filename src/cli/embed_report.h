#pragma once

#include <cstddef>
#include <string>

#include "jobs/embed.h"
#include "terminal/progress.h"

namespace muster {

/// The report for people: what was done, how fast, a table of devices, where the time went.
///
/// width: columns that tables may take.
std::string describe_report(const EmbedReport& report, std::size_t width);

/// The report for programs: one JSON object in one line, every field of EmbedReport, units last.
std::string report_json(const EmbedReport& report);

/// What the progress bar shows of a running job.
ProgressReading progress_reading(const EmbedProgress& progress);

}  // namespace muster
