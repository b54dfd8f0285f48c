#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load/sample.h"
#include "bench/result/slo.h"
#include "bench/statistics/percentile.h"

namespace muster {

/// Whether the generator itself was in time, which a run must show before its figures are about the
/// server.
struct GeneratorCheck {
  double lag_p99 = 0;  // seconds
  double limit = 0;    // the most that is allowed
  /// "send lag": of an open loop; "timer lateness": of a closed loop, whose requests have no
  /// intended time.
  std::string_view what;
  bool is_in_time = true;
};

/// Where the time of an answered request went, in the mean; the parts add up to the latency.
struct TimeParts {
  double connection_wait = 0;  // until a connection was free
  double lag = 0;              // the generator was late
  double sending = 0;          // connecting, and until the system had taken the request
  double first_byte_wait = 0;  // until the head of the answer; with it the server's work
  double receiving = 0;        // from the head to the last byte; of a stream most of the work

  double total() const { return connection_wait + lag + sending + first_byte_wait + receiving; }
};

/// A stage that the server reports, in the mean over all answered requests.
struct StageTime {
  std::string name;
  double seconds = 0;
};

/// What speaks against the stages that a server reports.
struct StageDoubts {
  /// Answered requests that their stages, together, exceed by more than a millisecond a stage (to
  /// which servers round): from the sending to the head of the answer there was no such time.
  std::uint64_t too_long = 0;
  std::uint64_t left_out = 0;  // reported times that are none, or of too many names; of all answers

  bool has_any() const { return too_long > 0 || left_out > 0; }
};

struct TokenCounts {
  std::uint64_t input = 0;   // of answered requests after the warm-up, as `output`
  std::uint64_t output = 0;  // 0: nothing is written, as by embeddings
  /// Those of a mean answer, by `answered_per_second`. nullopt: that is not known.
  std::optional<double> input_per_second = {};
  /// What came in the counted time, of every request that was answered, whenever that was: pieces
  /// of a stream have times, and each piece is as many tokens as any other of its answer; an answer
  /// without pieces comes at its end. nullopt: nothing was written, or nothing came in that time.
  std::optional<double> output_per_second = {};
  std::uint64_t output_pieces = 0;  // in which those came: of answers without pieces, answers
  /// "usage" (the server's), "tokenizer" or "events" (pieces of a stream: servers may send several
  /// tokens in one); empty: nothing was written.
  std::string_view output_source;
};

/// Which part of a trial is counted.
struct WarmUpRule {
  std::optional<double> seconds = {};  // nullopt: find_steady_part decides
};

/// What one trial shows. Distributions are of answered requests after the warm-up, in seconds.
struct TrialSummary {
  double warm_up_seconds = 0;
  bool is_warm_up_given = false;   // by the plan; else find_steady_part has found it
  std::uint64_t warm_up_sent = 0;  // meanwhile; counted nowhere else
  std::optional<bool> is_steady = {};
  double drift = 0;
  double counted_seconds = 0;  // from the warm-up's end to the end of sending

  std::uint64_t sent = 0;  // after the warm-up, as everything below
  std::uint64_t answered = 0;
  std::map<std::string_view, std::uint64_t> failed;  // by `sample_end_name`
  double sent_per_second = 0;                        // by their intended times; 0: no time between
  double answered_per_second = 0;                    // that ended while it was being sent
  /// Answers that ended after the sending, less those of the warm-up that ended in the counted time
  /// and so stand for them: as many as `answered_per_second` misses.
  std::uint64_t missed_at_end = 0;
  std::optional<double> offered_per_second = {};  // open loop: what was asked for
  double early_latency = 0;                       // the mean of the first tenth of those answered

  std::optional<Distribution> latency;
  std::optional<Distribution> service;
  std::optional<Distribution> lag;
  std::optional<Distribution> first_token;  // from the intended time
  std::optional<Distribution> token_gap;    // between the pieces of a stream
  // (last - first token) / (tokens - 1) of each answer that came in several pieces
  std::optional<Distribution> per_token;
  TimeParts parts;
  std::vector<StageTime> stages;
  StageDoubts stage_doubts;
  std::optional<TokenCounts> tokens;
  GeneratorCheck generator;
  bool is_saturated = false;  // requests waited for a connection
  bool has_kept_up = true;    // `keeps_up`, of an open loop; a closed one waits for the server

  std::uint64_t failed_count() const { return sent - answered; }
  /// Whether `answered_per_second` was measured: it is not where there was no time, nor where all
  /// answers came after it.
  bool has_rate() const {
    return counted_seconds > 0 && (answered == 0 || answered_per_second > 0);
  }
  bool is_valid() const { return generator.is_in_time; }
};

/// What a run was asked to do, as far as its summary depends on it.
struct TrialPlan {
  bool is_open_loop = false;
  std::optional<double> offered_per_second = {};
  WarmUpRule warm_up = {};
  bool counts_with_tokenizer = false;
};

/// The most that the 99th percentile of the generator's lateness may be: 1 ms, or a hundredth of
/// the median latency where that is more. A lag shifts the load and, in open loop, is itself part
/// of the latency; 1 ms is what generators on a quiet machine keep. Source: wrk2 README (its own
/// timers are good to about 1 ms). Threads: pure.
double lag_limit(double latency_p50);

/// Threads: pure.
TrialSummary summarize_trial(const TrialSamples& trial, const TrialPlan& plan);

/// Whether a rate misses so many answers at its end that its interval does not show it: a fifth of
/// them, as where each takes a quarter of the trial. Where the server has not kept up it says
/// nothing: what waits in the queue at the end was not missed, and the rate is the server's own.
/// Threads: pure.
bool is_cut_short(std::uint64_t missed_at_end, std::uint64_t answered);

/// Whether the server has answered as fast as it was asked, so that no queue grew: 95 % of what was
/// sent was answered meanwhile, less what is on its way at the end however fast it is. As much is
/// on its way as is sent in the mean latency of the first tenth, when there was no queue yet; where
/// a warm-up was cut, answers to what it has sent stand for it.
///
/// Source: Little 1961, "A proof for the queuing formula L = lambda W". Threads: pure.
bool keeps_up(const TrialSummary& summary);

/// The figures by name, for objectives and comparisons. Threads: pure.
FigureMap figures_of(const TrialSummary& summary);

/// Whether a figure is a count of answers, or of what is in them, over time: `throughput`,
/// `token_throughput`. Threads: pure.
bool is_rate_figure(std::string_view figure);

/// What a trial counts for a figure of that kind, for `count_resolution`: the answers that came in
/// the counted time, or for tokens that were written the pieces in which they came. Threads: pure.
double rate_count(const TrialSummary& summary, std::string_view figure);

}  // namespace muster
