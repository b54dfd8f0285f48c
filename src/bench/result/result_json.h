#pragma once

#include <string>

#include "bench/result/bench_result.h"

namespace muster {

/// A result with all its samples as JSON, ending in a line end: docs/formats/bench-result.md,
/// checked by docs/formats/bench-result.schema.json.
///
/// Cost: about a microsecond a sample. Threads: pure.
std::string result_json(const BenchResult& result);

}  // namespace muster
