#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/statistics/queue_laws.h"
#include "net/event_loop.h"
#include "net/http_server.h"

namespace muster {

/// What a null server does. Times in seconds.
struct NullServerOptions {
  ListenAddress listen = {"127.0.0.1", 0};
  /// One queue, one server, first come first served. nullopt: each request is done at once.
  std::optional<ServiceLaw> law = {};
  double mean_seconds = 0.001;
  std::uint64_t seed = 1;  // of the service times
  /// Times that are added to each request without a queue, by name: what a slow stage would cost.
  std::vector<std::pair<std::string, double>> stages = {};
  double token_gap_seconds = 0.005;  // of a stream, after its first token

  /// Service times are `warm_up_factor` as long at first, and fall to their own on a straight line.
  double warm_up_seconds = 0;
  double warm_up_factor = 1;
  /// It does nothing at all from `freeze_at` to `freeze_at` + `freeze_seconds` after the first
  /// request.
  double freeze_at = 0;
  double freeze_seconds = 0;
  bool speaks_nonsense = false;  // bodies and streams that are no JSON
  std::uint32_t fail_every = 0;  // each so-manieth request gets a 500; 0: none
  std::string log_file = {};     // when each request came and its answer went; empty: none
};

/// A server that does no work and takes exactly as long as it is told: for trying load generators.
///
/// The queue is one of numbers. A request's end is worked out from its arrival, the end of the one
/// before it and its own service time, and the answer is sent at that moment, so neither the time
/// that sending takes nor a late timer adds up along the queue. Answers are those of OpenAI's
/// embeddings, completions and chat (the latter two as streams of `max_tokens` words), rerank, a
/// list of one model, and "ok" for all other targets; Server-Timing has the parts of each.
///
/// A client that does not take its answer is cut off. Threads: not thread-safe; the loop's.
class NullServer {
 public:
  /// On a loop that outlives it.
  ///
  /// Errors: Unavailable (the port is in use), InvalidArgument (no such address, no such log file).
  static Result<std::unique_ptr<NullServer>> start(EventLoop& loop,
                                                   const NullServerOptions& options);
  virtual ~NullServer() = default;

  virtual std::uint16_t port() const = 0;
  /// Requests whose answers were sent.
  virtual std::uint64_t answered() const = 0;
};

}  // namespace muster
