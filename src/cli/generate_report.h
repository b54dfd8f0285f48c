#pragma once

#include <string>

#include "jobs/generate.h"

namespace muster {

/// What a reply took, for standard error: what was not measured is left out. Ends its last line.
std::string generate_report_text(const GenerateOptions& options, const GenerateReport& report);

/// Reply and report as one JSON object, a line; without the keys of what was not measured.
std::string generate_report_json(const GenerateOptions& options, const GenerateReport& report,
                                 const std::string& reply);

}  // namespace muster
