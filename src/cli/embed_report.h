#pragma once

#include <string>

#include "jobs/embed.h"
#include "terminal/progress.h"

namespace muster {

/// The report for people: in a line or two what was done, how fast and where it is, then what is
/// worth knowing of the texts, and a table of devices.
///
/// is_verbose: also why this precision, where the time went, and whose CPU time it was.
std::string describe_report(const EmbedReport& report, const TerminalInfo& terminal,
                            bool is_verbose);

/// The report for programs: one JSON object in one line, every field of EmbedReport, units last.
std::string report_json(const EmbedReport& report);

/// What the progress bar shows of a running job: a lane for each device. The share of the work that
/// is done is that of the input's bytes that were read, times that of their tokens that were
/// computed (of their texts, where nobody counts tokens before they are computed).
ProgressReading progress_reading(const EmbedProgress& progress);

}  // namespace muster
