#pragma once

#include "base/result.h"
#include "cli/command.h"

namespace muster {

/// `muster bench run FILE [KEY=VALUE...]`: checks the file, the devices and every point, then
/// measures the points that are wanted and keeps each as soon as it is finished.
///
/// The value is the exit code: 22 where a point is not valid, 24 where one misses its objectives,
/// 25 where one of them is not known, 128 and the signal after Ctrl-C. Errors: what is refused,
/// before anything is measured or written; a point that could not be measured, when the others are
/// done.
Result<int> run_bench_file(const CommandContext& context);

}  // namespace muster
