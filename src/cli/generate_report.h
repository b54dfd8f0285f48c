#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "jobs/generate.h"

namespace muster {

/// What a reply took, for standard error, in lines of `width` columns. What was not measured is
/// left out. Ends its last line.
std::string generate_report_text(const GenerateOptions& options, const GenerateReport& report,
                                 std::size_t width);

/// What cut a reply short, behind what else is told of it: "; stopped", "; max-tokens is reached",
/// "; the context has no room for more"; empty where it ended by itself.
std::string_view cut_words(GenerateEnd end, bool is_context_full);

/// Reply and report as one JSON object, a line; without the keys of what was not measured.
std::string generate_report_json(const GenerateOptions& options, const GenerateReport& report,
                                 const std::string& reply);

}  // namespace muster
