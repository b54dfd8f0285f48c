// From samples to figures: first the warm-up is cut, then everything is worked out from what is
// left. Figures of answered requests are never mixed with those of failed ones, whose times say
// nothing about the work.
#include "bench/result/trial_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/statistics/warm_up.h"

namespace muster {
namespace {

constexpr double kLagLimit = 1e-3;
constexpr double kLagLimitShare = 0.01;
constexpr double kMedian = 0.5;
constexpr double kTail = 0.99;
constexpr double kKeptShare = 0.95;  // of what is sent, else a queue grows without end
constexpr double kCutShare = 0.2;    // of the answers, from which on a rate is cut short
constexpr std::size_t kEarlyPart = 10;
constexpr double kStageRounding = 1e-3;  // of TEI's headers, whole milliseconds each

using Samples = std::vector<const Sample*>;

template <typename Get>
std::vector<double> values_of(const Samples& samples, Get get) {
  std::vector<double> values;
  values.reserve(samples.size());
  for (const auto* sample : samples) {
    const double value = get(*sample);
    if (!std::isnan(value)) values.push_back(value);
  }
  return values;
}

template <typename Get>
double mean_of(const Samples& samples, Get get) {
  double sum = 0;
  for (const auto* sample : samples) sum += get(*sample);
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

// Nearest rank, without the caution of `estimate_percentile`: a verdict is needed for few samples
// too.
double plain_percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::ranges::nth_element(values, at);
  return *at;
}

double token_count(const Sample& sample) {
  return static_cast<double>(sample.output_tokens >= 0 ? sample.output_tokens
                                                       : std::int64_t{sample.token_events});
}

// An answer in one piece has one time, however many tokens it is: nothing says when they were made.
double time_per_token(const Sample& sample) {
  const double count = token_count(sample);
  return count > 1 && sample.token_events > 1
             ? (sample.last_token - sample.first_token) / (count - 1)
             : kNever;
}

void cut_warm_up(const TrialSamples& trial, const WarmUpRule& rule, TrialSummary& summary) {
  if (rule.seconds) {
    summary.warm_up_seconds = *rule.seconds;
    summary.is_warm_up_given = true;
    return;
  }
  std::vector<double> latencies;
  std::vector<double> intended;
  for (const auto& sample : trial.samples) {
    if (!sample.is_answered()) continue;
    latencies.push_back(sample.latency());
    intended.push_back(sample.intended);
  }
  const auto part = find_steady_part(latencies);
  summary.is_steady = part.is_steady;
  summary.drift = part.drift;
  if (part.begin > 0) summary.warm_up_seconds = intended[part.begin];
}

void count_requests(const TrialSamples& trial, TrialSummary& summary, Samples& answered) {
  std::uint64_t in_time = 0;
  std::uint64_t late = 0;
  for (const auto& sample : trial.samples) {
    if (sample.intended < summary.warm_up_seconds) {
      ++summary.warm_up_sent;
      continue;
    }
    ++summary.sent;
    if (sample.is_answered()) {
      answered.push_back(&sample);
      late += sample.end > trial.sending_seconds;
    } else {
      ++summary.failed[sample_end_name(sample.outcome)];
    }
  }
  // Answers of requests from the warm-up count for the rate, too: as many are still to come at the
  // end.
  for (const auto& sample : trial.samples) {
    in_time += sample.is_answered() && sample.end >= summary.warm_up_seconds &&
               sample.end <= trial.sending_seconds;
  }
  summary.answered = answered.size();
  const auto stand_ins = in_time + late - std::min(in_time + late, summary.answered);
  summary.missed_at_end = late - std::min(late, stand_ins);
  summary.counted_seconds = std::max(trial.sending_seconds - summary.warm_up_seconds, 0.0);
  if (summary.counted_seconds <= 0) return;  // all at one moment, as a trace may have them: no rate
  summary.sent_per_second = static_cast<double>(summary.sent) / summary.counted_seconds;
  summary.answered_per_second = static_cast<double>(in_time) / summary.counted_seconds;
}

double early_mean(const std::vector<double>& latencies) {
  if (latencies.empty()) return 0;
  const auto count = std::max<std::size_t>(1, latencies.size() / kEarlyPart);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += latencies[i];
  return sum / static_cast<double>(count);
}

// A server may answer before it has read the request to its end; then nothing says when it was
// sent.
double sent_at(const Sample& sample) {
  return std::isnan(sample.sent) ? sample.first_byte : sample.sent;
}

TimeParts time_parts(const Samples& samples) {
  return {.connection_wait = mean_of(samples, [](const Sample& s) { return s.ready - s.intended; }),
          .lag = mean_of(samples, [](const Sample& s) { return s.lag(); }),
          .sending = mean_of(samples, [](const Sample& s) { return sent_at(s) - s.started; }),
          .first_byte_wait =
              mean_of(samples, [](const Sample& s) { return s.first_byte - sent_at(s); }),
          .receiving = mean_of(samples, [](const Sample& s) { return s.end - s.first_byte; })};
}

std::vector<StageTime> stage_shares(const TrialSamples& trial, const Samples& answered) {
  std::vector<StageTime> shares;
  for (const auto& stage : trial.stages) {
    double sum = 0;
    for (const auto* sample : answered) {
      const auto at = static_cast<std::size_t>(sample - trial.samples.data());
      if (!std::isnan(stage.seconds[at])) sum += stage.seconds[at];
    }
    const double count = std::max(1.0, static_cast<double>(answered.size()));
    shares.push_back({.name = stage.name, .seconds = sum / count});
  }
  return shares;
}

// Stages that overlap, as a total beside its parts, or of a clock that is wrong.
StageDoubts stage_doubts(const TrialSamples& trial, const Samples& answered) {
  StageDoubts doubts{.left_out = trial.stages_left_out};
  for (const auto* sample : answered) {
    const auto at = static_cast<std::size_t>(sample - trial.samples.data());
    double over = sample->started - sample->first_byte;
    for (const auto& stage : trial.stages) {
      if (!std::isnan(stage.seconds[at])) over += stage.seconds[at] - kStageRounding;
    }
    if (over > 0) ++doubts.too_long;
  }
  return doubts;
}

// An answer without pieces is one, which comes at its end.
std::uint32_t piece_count(const Sample& sample) { return std::max(1U, sample.token_events); }

// Those of an answer that came in the counted time.
std::uint32_t pieces_in_time(const TrialSamples& trial, const Sample& sample, double begin) {
  const auto counts = [&](double at) {
    return at >= begin && at <= trial.sending_seconds ? 1U : 0U;
  };
  if (sample.token_events == 0) return counts(sample.end);
  double at = sample.first_token;
  std::uint32_t in_time = counts(at);
  for (std::uint32_t i = 1; i < sample.token_events; ++i) {
    at += trial.gaps[sample.gaps_begin + i - 1];
    in_time += counts(at);
  }
  return in_time;
}

// counts: gets `output_pieces`, and `output_per_second` where anything came.
void count_output_in_time(const TrialSamples& trial, const TrialSummary& summary,
                          TokenCounts& counts) {
  double tokens = 0;
  for (const auto& sample : trial.samples) {
    if (!sample.is_answered()) continue;
    const auto pieces = pieces_in_time(trial, sample, summary.warm_up_seconds);
    counts.output_pieces += pieces;
    tokens += token_count(sample) * pieces / piece_count(sample);
  }
  if (summary.counted_seconds > 0 && tokens > 0) {
    counts.output_per_second = tokens / summary.counted_seconds;
  }
}

std::optional<TokenCounts> count_tokens(const TrialSamples& trial, const Samples& answered,
                                        const TrialSummary& summary, bool counts_with_tokenizer) {
  TokenCounts counts;
  bool has_any = false;
  bool has_all_counts = true;
  for (const auto* sample : answered) {
    if (sample->input_tokens > 0) counts.input += static_cast<std::uint64_t>(sample->input_tokens);
    counts.output += static_cast<std::uint64_t>(token_count(*sample));
    has_any = has_any || sample->input_tokens > 0 || token_count(*sample) > 0;
    has_all_counts = has_all_counts && sample->output_tokens >= 0;
  }
  if (!has_any) return std::nullopt;
  // Nothing says when a prompt was read: its tokens come with the answer.
  if (summary.has_rate()) {
    const double per_answer = summary.answered_per_second / static_cast<double>(answered.size());
    counts.input_per_second = static_cast<double>(counts.input) * per_answer;
  }
  if (counts.output == 0) return counts;
  counts.output_source = !has_all_counts ? "events" : counts_with_tokenizer ? "tokenizer" : "usage";
  count_output_in_time(trial, summary, counts);
  return counts;
}

std::vector<double> token_gaps(const TrialSamples& trial, const Samples& answered) {
  std::vector<double> gaps;
  for (const auto* sample : answered) {
    for (std::uint32_t i = 1; i < sample->token_events; ++i) {
      gaps.push_back(trial.gaps[sample->gaps_begin + i - 1]);
    }
  }
  return gaps;
}

GeneratorCheck check_generator(const TrialSamples& trial, const Samples& answered,
                               const TrialPlan& plan, double warm_up_seconds) {
  std::vector<double> lags = trial.tick_lateness;
  if (plan.is_open_loop) {
    lags.clear();
    for (const auto& sample : trial.samples) {
      const bool counts = sample.intended >= warm_up_seconds && !std::isnan(sample.started);
      if (counts) lags.push_back(sample.lag());
    }
  }
  const auto latencies = values_of(answered, [](const Sample& s) { return s.latency(); });
  GeneratorCheck check{.lag_p99 = plain_percentile(std::move(lags), kTail),
                       .limit = lag_limit(plain_percentile(latencies, kMedian)),
                       .what = plan.is_open_loop ? "send lag" : "timer lateness"};
  check.is_in_time = check.lag_p99 <= check.limit;
  return check;
}

void add_times(FigureMap& figures, const std::string& name,
               const std::optional<Distribution>& distribution) {
  if (!distribution) return;
  figures[name + "_mean"] = distribution->mean.value;
  for (const auto& one : distribution->percentiles) {
    if (!one.estimate) continue;
    constexpr double kPerMille = 1000;
    auto digits = fmt::format("{:.0f}", one.share * kPerMille);
    while (digits.size() > 2 && digits.ends_with('0')) digits.pop_back();  // 990 is p99
    figures[name + "_p" + digits] = one.estimate->value;
  }
}

}  // namespace

bool is_cut_short(std::uint64_t missed_at_end, std::uint64_t answered) {
  return answered > 0 &&
         static_cast<double>(missed_at_end) >= kCutShare * static_cast<double>(answered);
}

bool keeps_up(const TrialSummary& summary) {
  const double on_their_way =
      std::clamp(summary.early_latency - summary.warm_up_seconds, 0.0, summary.counted_seconds);
  const double answerable =
      summary.sent_per_second * (summary.counted_seconds - on_their_way);  // in all that time
  return summary.answered_per_second * summary.counted_seconds >= kKeptShare * answerable;
}

double lag_limit(double latency_p50) { return std::max(kLagLimit, kLagLimitShare * latency_p50); }

TrialSummary summarize_trial(const TrialSamples& trial, const TrialPlan& plan) {
  TrialSummary summary;
  summary.offered_per_second = plan.offered_per_second;
  cut_warm_up(trial, plan.warm_up, summary);
  Samples answered;
  count_requests(trial, summary, answered);
  const auto latencies = values_of(answered, [](const Sample& s) { return s.latency(); });
  summary.early_latency = early_mean(latencies);
  summary.latency = summarize(latencies);
  summary.service = summarize(values_of(answered, [](const Sample& s) { return s.service(); }));
  summary.lag = summarize(values_of(answered, [](const Sample& s) { return s.lag(); }));
  summary.first_token =
      summarize(values_of(answered, [](const Sample& s) { return s.first_token - s.intended; }));
  summary.token_gap = summarize(token_gaps(trial, answered));
  summary.per_token = summarize(values_of(answered, time_per_token));
  summary.parts = time_parts(answered);
  summary.stages = stage_shares(trial, answered);
  summary.stage_doubts = stage_doubts(trial, answered);
  summary.tokens = count_tokens(trial, answered, summary, plan.counts_with_tokenizer);
  summary.generator = check_generator(trial, answered, plan, summary.warm_up_seconds);
  // Those that never got an answer have waited longest.
  summary.is_saturated =
      plan.is_open_loop && std::ranges::any_of(trial.samples, [&](const Sample& sample) {
        return sample.intended >= summary.warm_up_seconds &&
               (sample.ready > sample.intended || sample.outcome == SampleEnd::Unsent);
      });
  summary.has_kept_up = !plan.is_open_loop || keeps_up(summary);
  return summary;
}

FigureMap figures_of(const TrialSummary& summary) {
  FigureMap figures;
  add_times(figures, "latency", summary.latency);
  add_times(figures, "service", summary.service);
  add_times(figures, "ttft", summary.first_token);
  add_times(figures, "itl", summary.token_gap);
  add_times(figures, "tpot", summary.per_token);
  if (summary.sent > 0) {
    figures["error_rate"] =
        static_cast<double>(summary.failed_count()) / static_cast<double>(summary.sent);
  }
  if (summary.has_rate()) figures["throughput"] = summary.answered_per_second;
  if (!summary.tokens) return figures;
  const auto& rate = summary.tokens->output > 0 ? summary.tokens->output_per_second
                                                : summary.tokens->input_per_second;
  if (rate) figures["token_throughput"] = *rate;
  return figures;
}

bool is_rate_figure(std::string_view figure) {
  return figure == "throughput" || figure == "token_throughput";
}

double rate_count(const TrialSummary& summary, std::string_view figure) {
  const bool is_of_pieces =
      figure == "token_throughput" && summary.tokens && summary.tokens->output > 0;
  return is_of_pieces ? static_cast<double>(summary.tokens->output_pieces)
                      : summary.answered_per_second * summary.counted_seconds;
}

}  // namespace muster
