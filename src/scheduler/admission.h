#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "spec/serving.h"

namespace muster {

/// What one caller may do. Absent: no limit of its own.
struct CallerLimits {
  std::optional<double> requests_per_minute{};
  std::optional<double> tokens_per_minute{};
  std::optional<std::uint32_t> requests_at_once{};
};

/// What is left of a limit per minute.
struct LimitUsage {
  double limit = 0;
  double remaining = 0;  // may be used at once
  Duration reset{};      // until all of it may be
};

struct CallerUsage {
  std::optional<LimitUsage> requests{};
  std::optional<LimitUsage> tokens{};
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
  /// Of replies, which are computed side by side: each of them counts as a request. 0: texts, which
  /// count as below.
  std::uint64_t request_count = 0;
  std::uint64_t token_estimate = 0;  // scheduler/token_estimate.h
  bool is_interactive = false;       // as it was asked for, whichever lane it is given
};

/// What the queue looks like now. What was let in and is not queued yet counts as queued.
struct QueueState {
  std::uint64_t queued_texts = 0;
  std::uint64_t outstanding_tokens = 0;     // waiting or with a device
  std::uint64_t tokens_ahead = 0;           // of these, all that do not wait behind the request
  std::optional<double> tokens_per_second;  // of all that may work; nullopt: not known yet
  std::uint32_t eligible_device_count = 0;
};

struct Refused {
  Duration retry_after{};     // from the measured rate; at least a second, as the header counts
  std::string reason;         // "key ci has used its 60 requests a minute"
  bool is_own_limit = false;  // the caller's, not the server's
  bool is_final = false;      // it is more than the limit allows at any time
};

/// What stands for a speed that is not known, before a device has loaded its model or where it
/// could not be calibrated: that of a large encoder (303 million parameters in its layers, 0.6
/// GFLOP a token) on few CPU cores (300 GFLOP/s). With a budget of 2 s a thousand tokens are let
/// in, beside a first request of any size.
inline constexpr double kUnknownTokensPerSecond = 500;

/// Decides by tokens and predicted time whether work is let in. A text of k requests and k texts of
/// one request are treated alike: tokens count, and for the caller's requests_per_minute a request
/// counts as one for each 32 texts or part of them. For requests_at_once it counts as one, however
/// many texts it has. A request for several replies counts as so many for both.
///
/// The predicted wait is (tokens ahead + this request's) / tokens a second: bulk texts that wait
/// are not ahead of an interactive request. While no speed is known, `kUnknownTokensPerSecond`
/// stands for it. A request that alone is longer than the budget is let in when nothing is ahead.
///
/// A caller's limits are token buckets that hold what a minute allows and start full, so that a
/// caller may use a minute's worth at once. Tokens are charged by the estimate, by more where it
/// turns out too low, and put right at the end. A request of more than a minute's worth is let in
/// when the bucket is full.
///
/// A caller's requests are interactive as long as those under way are little work: the rest waits
/// with the bulk texts, whatever lane it asks for.
/// Source of the bucket: Turner 1986, "New directions in communications", IEEE Communications
/// Magazine 24(10).
///
/// Pure. Threads: owned by one loop.
class Admission {
 public:
  explicit Admission(AdmissionOptions options) : options_(options) {}

  void set_options(const AdmissionOptions& options) { options_ = options; }

  /// What callers have used stays used.
  void set_limits(std::map<std::string, CallerLimits> limits);

  /// nullopt: let in, and counted until `on_end`.
  std::optional<Refused> ask(const AdmissionRequest& request, const QueueState& queue,
                             TimePoint now);

  /// The lane of a request: interactive only if it asks for that, and if all of its caller's that
  /// asked for it and are under way have at most `tokens_most` tokens with this one. After more,
  /// all of this caller's are bulk until half as much is under way, or none: in two lanes at once
  /// its texts would make smaller batches, and the older ones would wait for the newer. That holds
  /// for models of which no more than about as many tokens are interactive.
  Lane lane(const AdmissionRequest& request, double tokens_most);

  /// What a caller has left now; nullopt: he has no limit per minute.
  std::optional<CallerUsage> usage_of(const std::string& caller, TimePoint now) const;

  /// What was let in takes so many tokens more than it was estimated at: they are charged from now
  /// on, and its estimate is greater by them.
  void grow(AdmissionRequest& request, std::uint64_t tokens, TimePoint now);

  /// A request that was let in has ended, and so many tokens were computed for it.
  void on_end(const AdmissionRequest& request, std::uint64_t token_count, TimePoint now);

 private:
  /// What a caller may still use of a limit per minute.
  struct Bucket {
    double used = 0;  // of a minute's worth; it falls with time, and below 0 never
    TimePoint at{};

    double used_now(double per_minute, TimePoint now) const;
    void use(double amount, double per_minute, TimePoint now);
    /// How long until `amount` fits; nullopt: now.
    std::optional<Duration> wait(double amount, double per_minute, TimePoint now) const;
    LimitUsage usage(double per_minute, TimePoint now) const;
  };
  struct Caller {
    CallerLimits limits;
    Bucket requests;
    Bucket tokens;
    std::uint64_t running_count = 0;
    std::uint64_t interactive_tokens = 0;  // of running requests that asked for that lane
    double flooded = 0;  // they were more than this, and are not half of it yet; 0: no
  };

  std::optional<Refused> ask_caller(const std::string& name, const Caller& caller,
                                    const AdmissionRequest& request, double tokens,
                                    TimePoint now) const;
  std::optional<Refused> ask_queue(const AdmissionRequest& request, const QueueState& queue,
                                   double tokens) const;
  AdmissionOptions options_;
  std::map<std::string, Caller> callers_;
};

}  // namespace muster
