#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"

namespace muster {

/// What one caller may do. Absent: no limit of its own.
struct CallerLimits {
  std::optional<double> requests_per_minute;
  std::optional<double> tokens_per_minute;
  std::optional<std::uint32_t> requests_at_once;
};

struct AdmissionOptions {
  Duration queue_budget = std::chrono::seconds(2);  // predicted wait of what is let in
  std::uint64_t queued_tokens_most = 8u << 20;      // whatever the prediction says
  std::uint64_t queued_texts_most = 200'000;
};

/// What is asked for, before anything is tokenised.
struct AdmissionRequest {
  std::string caller;  // the name of an API key; empty without keys
  std::uint64_t text_count = 0;
  std::uint64_t token_bound = 0;  // upper bound of the tokens, from the bytes
};

/// What the queue looks like now.
struct QueueState {
  std::uint64_t queued_texts = 0;
  std::uint64_t outstanding_tokens = 0;     // waiting or with a device
  std::optional<double> tokens_per_second;  // of all that may work; nullopt: not known yet
  std::uint32_t eligible_device_count = 0;
};

struct Admitted {};
struct Refused {
  Duration retry_after{};  // from the measured rate; at least a second, as the header counts
  std::string reason;  // "the queue is 2.4 s long and may be 2.0 s", "key ci: 60 requests a minute"
  bool is_own_limit = false;  // the caller's, not the server's
};

/// Decides by tokens and predicted time whether work is let in. A text of k requests and k texts of
/// one request are treated alike: tokens count, and for the caller's requests_per_minute a request
/// counts as one for each 32 texts or part of them.
///
/// A request that alone is longer than the budget is let in when nothing else waits.
/// Pure. Threads: owned by one loop.
class Admission {
 public:
  explicit Admission(AdmissionOptions options);

  void set_options(const AdmissionOptions& options) { options_ = options; }
  void set_limits(std::map<std::string, CallerLimits> limits);

  /// nullopt: let in, and counted until `on_end`.
  std::optional<Refused> ask(const AdmissionRequest& request, const QueueState& queue,
                             TimePoint now);

  /// A request that was let in has ended, with so many real tokens.
  void on_end(const AdmissionRequest& request, std::uint64_t token_count, TimePoint now);

 private:
  AdmissionOptions options_;
};

}  // namespace muster
