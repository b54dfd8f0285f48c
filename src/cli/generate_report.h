#pragma once

#include <cstddef>
#include <string>

#include "jobs/generate.h"

namespace muster {

/// What a reply took, for standard error, in lines of `width` columns. What was not measured is
/// left out. Ends its last line.
std::string generate_report_text(const GenerateOptions& options, const GenerateReport& report,
                                 std::size_t width);

/// Reply and report as one JSON object, a line; without the keys of what was not measured.
std::string generate_report_json(const GenerateOptions& options, const GenerateReport& report,
                                 const std::string& reply);

}  // namespace muster
