#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/result/bench_result.h"
#include "bench/result/result_diff.h"
#include "bench/selftest/selftest.h"

namespace muster {

/// A result for people: the verdict in one line, a table of each load, and where the time went.
///
/// width: columns of the terminal. Threads: pure.
std::string bench_text(const BenchResult& result, std::size_t width);

/// A comparison: its verdict, then a line for each figure. Where `width` has no room for that, each
/// load by its name with its figures below it, of which nothing is cut. Threads: pure.
std::string diff_text(const ResultDifference& difference, std::size_t width);

/// Threads: pure.
std::string selftest_text(const std::vector<SelftestCheck>& checks);

}  // namespace muster
