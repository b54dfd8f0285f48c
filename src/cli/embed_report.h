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

/// corpus_reading of a run that counts texts.
ProgressReading progress_reading(const CorpusProgress& progress);

}  // namespace muster
