#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "bench/load/answer_reader.h"
#include "bench/load/arrivals.h"
#include "bench/load/sample.h"
#include "net/http_client_connection.h"

namespace muster {

/// What is sent in one trial, and when.
struct LoadOptions {
  /// Open loop: requests come at these times, answers or none. nullopt: closed loop.
  std::optional<ArrivalPlan> arrivals = {};
  /// Closed loop: each sends its next request when it has the answer to the last.
  std::uint32_t clients = 1;
  /// Open loop: a request that finds none of these free waits for one.
  std::uint32_t connections_most = 4096;
  double seconds = 10;  // of sending
  std::uint64_t requests_most = ~0ULL;
  double answer_limit_seconds = 60;  // from a request's start to its answer's end
  std::uint64_t seed = 1;
  bool keeps_text = false;  // of answers, in TrialSamples::texts
  /// Asked now and then; true ends the trial.
  std::function<bool()> is_cancelled = [] { return false; };
};

/// Requests of one trial; all that a sample costs in memory bounds it.
inline constexpr std::uint64_t kSamplesMost = 10'000'000;

/// Sends prepared requests in turn and records when everything happened. One thread, one event
/// loop; nothing that it does for one request waits for another.
///
/// In open loop every request has its intended time, and what it waits for a connection counts as
/// latency: a client that waits before it sends has not met the server's slowness otherwise
/// ("coordinated omission").
///
/// target, requests (as bytes on the wire, at least one): live until the end.
/// Errors: Unavailable when the server cannot be reached at the start; Cancelled.
/// Source: Gil Tene, "How NOT to Measure Latency"; the README of wrk2.
/// Threads: blocks the calling thread, which gets short slices (base/thread_slice.h).
Result<TrialSamples> run_load(const HttpClientTarget& target, std::span<const std::string> requests,
                              const AnswerReaderMaker& make_reader, const LoadOptions& options);

}  // namespace muster
