#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/load/api_requests.h"
#include "bench/load/load_generator.h"
#include "bench/result/bench_result.h"
#include "bench/result/slo.h"
#include "bench/result/trial_summary.h"
#include "net/http_client_connection.h"

namespace muster {

/// One load of a run, with the name that results have for it.
struct LoadPoint {
  std::string name;  // load_name
  LoadOptions load;
};

/// "1 client", "8 clients", "poisson 100/s", "constant 10..200/s", "trace of 120 requests".
/// Threads: pure.
std::string load_name(const LoadOptions& load);

/// Everything that a run does, once its server is there.
struct BenchRunOptions {
  const HttpClientTarget* target = nullptr;
  const PreparedRequests* requests = nullptr;
  std::vector<LoadPoint> points = {};  // at least one
  std::uint32_t trials = 1;            // of each
  double cooldown_seconds = 1;         // between trials
  std::uint64_t seed = 1;
  WarmUpRule warm_up = {};
  std::vector<Objective> objectives = {};
  bool finds_peak = false;  // of the one open-loop point, under the objectives
  /// Trials of a search are as long as this at most where that many requests are needed to know the
  /// objectives; 0: as long as the point says.
  double search_seconds_most = 0;
  /// Of a text: its tokens. Empty: answers are not counted here.
  std::function<std::uint64_t(std::string_view)> count_tokens = {};
  /// CPU seconds of a server that was started for the run; what is not ours counts as others'.
  std::function<double()> server_cpu_seconds = [] { return 0.0; };
  /// Called just before the first request of each trial, and behind its last answer: what watches
  /// the devices has the same window as the requests. An error ends the run.
  std::function<Status()> on_trial_begin = [] { return Status(Done{}); };
  std::function<Status()> on_trial_end = [] { return Status(Done{}); };
  std::function<bool()> is_cancelled = [] { return false; };
  std::function<void(std::string_view)> on_step = [](std::string_view) {};
};

/// How long a search sends at a rate so that each objective about requests is known: as `usual`, or
/// longer where that is not enough and `most` is. What a given warm-up cuts comes on top of what
/// the objectives need. Threads: pure.
double search_seconds(const std::vector<Objective>& objectives, double rate, double usual,
                      double most, const WarmUpRule& warm_up);

/// Fills in `points`, `order`, `peak` and `server` of a result.
///
/// The trials of all loads are run in a random order, which the seed fixes, so that what drifts on
/// the machine meets all alike. Trial k of every load has the seed `seed` + k. A search for the
/// peak tries one trial at each rate (`rate_outcome`).
///
/// Errors: those of run_load, and of the two calls. Threads: blocks the calling thread.
Status run_bench(const BenchRunOptions& options, BenchResult& result);

}  // namespace muster
