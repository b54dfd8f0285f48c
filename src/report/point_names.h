#pragma once

#include <vector>

#include "report/report_result.h"

namespace muster {

/// Calls each point that was found in a folder by what differs between them, "batch_size=8
/// torch_dtype=bf16", and brings them into the order of these values, numbers by size: their files
/// are named by a hash. Other results stay where they are; a point keeps its name where nothing
/// differs, and has it behind the new one where another point has the same values. Threads: pure.
void name_points(std::vector<ReportResult>& results);

}  // namespace muster
