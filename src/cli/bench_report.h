#pragma once

#include "base/result.h"
#include "bench/statistics/comparison.h"
#include "cli/command.h"

namespace muster {

/// `muster bench report RESULT... -o FILE`: reads results, the points in folders, and recordings
/// (.jsonl), and writes them as one page. rule: of the verdicts.
///
/// The value is the exit code. Errors: InvalidArgument (no result; FILE is somebody's own; a
/// recording of none of the results), NotFound, those of reading, report_page and writing.
Result<int> write_bench_report(const CommandContext& context, const ComparisonRule& rule);

}  // namespace muster
