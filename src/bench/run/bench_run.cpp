// The loop over trials: order, pauses, what the machine did meanwhile, and the search for a rate.
#include "bench/run/bench_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/wall_clock.h"
#include "bench/result/peak_search.h"
#include "bench/statistics/random_stream.h"

namespace muster {
namespace {

constexpr auto kPauseStep = std::chrono::milliseconds(50);

Error cancelled() { return {ErrorKind::Cancelled, "cancelled"}; }

Status cool_down(const BenchRunOptions& options) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(options.cooldown_seconds);
  while (std::chrono::steady_clock::now() < until) {
    if (options.is_cancelled()) return cancelled();
    std::this_thread::sleep_for(kPauseStep);
  }
  return Done{};
}

// Where the server does not count, we do.
void count_output_tokens(const BenchRunOptions& options, TrialSamples& trial) {
  if (!options.count_tokens) return;
  for (std::size_t i = 0; i < trial.samples.size(); ++i) {
    auto& sample = trial.samples[i];
    if (!sample.is_answered()) continue;
    sample.output_tokens = static_cast<std::int64_t>(options.count_tokens(trial.texts[i]));
  }
  trial.texts.clear();
}

std::optional<double> offered_rate(const LoadOptions& load) {
  if (!load.arrivals || load.arrivals->law == ArrivalLaw::Trace) return std::nullopt;
  const auto& plan = *load.arrivals;
  return plan.ramp_seconds > 0 ? (plan.rate_begin + plan.rate_end) / 2 : plan.rate_begin;
}

Result<BenchTrial> run_trial(const BenchRunOptions& options, const LoadOptions& point,
                             std::uint64_t seed) {
  auto load = point;
  load.seed = seed;
  load.keeps_text = static_cast<bool>(options.count_tokens);
  load.is_cancelled = options.is_cancelled;
  BenchTrial trial{.seed = seed, .started_at = unix_seconds()};
  MUSTER_TRY(options.on_trial_begin());
  const MachineWatch machine;
  const double server_before = options.server_cpu_seconds();
  trial.samples = MUSTER_TRY(
      run_load(*options.target, options.requests->bytes, options.requests->make_reader, load));
  MUSTER_TRY(options.on_trial_end());
  const double server = options.server_cpu_seconds() - server_before;
  trial.machine = machine.use(trial.samples.own_cpu_seconds + server);
  count_output_tokens(options, trial.samples);
  trial.summary = summarize_trial(
      trial.samples, {.is_open_loop = load.arrivals.has_value(),
                      .offered_per_second = offered_rate(load),
                      .warm_up = options.warm_up,
                      .counts_with_tokenizer = static_cast<bool>(options.count_tokens)});
  return trial;
}

// Each point as often as it has trials, shuffled (Fisher and Yates).
std::vector<std::size_t> random_order(const BenchRunOptions& options) {
  std::vector<std::size_t> order;
  for (std::size_t point = 0; point < options.points.size(); ++point) {
    order.insert(order.end(), options.trials, point);
  }
  RandomStream random(options.seed);
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
  return order;
}

Status run_points(const BenchRunOptions& options, BenchResult& result) {
  result.order = random_order(options);
  for (const auto& point : options.points)
    result.points.push_back({.load = point.name, .trials = {}});
  for (std::size_t i = 0; i < result.order.size(); ++i) {
    if (i > 0) MUSTER_TRY(cool_down(options));
    const auto& point = options.points[result.order[i]];
    auto& trials = result.points[result.order[i]].trials;
    options.on_step(fmt::format("trial {} of {}: {}", i + 1, result.order.size(), point.name));
    trials.push_back(MUSTER_TRY(run_trial(options, point.load, options.seed + trials.size())));
  }
  for (auto& point : result.points) {
    point.objectives = judge_point(options.objectives, point);
  }
  return Done{};
}

Status find_peak(const BenchRunOptions& options, BenchResult& result) {
  auto load = options.points.front().load;
  const double usual_seconds = load.seconds;
  PeakSearch search({.first_rate = load.arrivals->rate_begin});
  while (const auto rate = search.next_rate()) {
    if (!result.points.empty()) MUSTER_TRY(cool_down(options));
    load.arrivals->rate_begin = load.arrivals->rate_end = *rate;
    load.seconds = search_seconds(options.objectives, *rate, usual_seconds,
                                  options.search_seconds_most, options.warm_up);
    BenchPoint point{.load = load_name(load), .trials = {}};
    options.on_step(
        load.seconds > usual_seconds
            ? fmt::format("{} for {:.0f} s, which the objectives need", point.load, load.seconds)
            : point.load);
    point.trials.push_back(MUSTER_TRY(run_trial(options, load, options.seed)));
    point.objectives = judge_point(options.objectives, point);
    search.report(rate_outcome(point));
    result.order.push_back(result.points.size());
    result.points.push_back(std::move(point));
  }
  result.peak =
      PeakResult{.rate = search.peak(), .missed = search.missed(), .unknown = search.unknown()};
  return Done{};
}

}  // namespace

std::string load_name(const LoadOptions& load) {
  if (!load.arrivals) {
    return fmt::format("{} client{}", load.clients, load.clients == 1 ? "" : "s");
  }
  const auto& plan = *load.arrivals;
  if (plan.law == ArrivalLaw::Trace) {
    return fmt::format("trace of {} requests", plan.trace.size());
  }
  const auto law = arrival_law_name(plan.law);
  if (plan.ramp_seconds > 0)
    return fmt::format("{} {:.6g}..{:.6g}/s", law, plan.rate_begin, plan.rate_end);
  return fmt::format("{} {:.6g}/s", law, plan.rate_begin);
}

double search_seconds(const std::vector<Objective>& objectives, double rate, double usual,
                      double most, const WarmUpRule& warm_up) {
  double wanted = usual;
  for (const auto& one : objectives) {
    if (one.figure.starts_with("itl")) continue;  // an answer has many gaps
    if (const auto needed = samples_needed_of(one.figure)) {
      wanted = std::max(wanted, warm_up.seconds.value_or(0) + seconds_for_samples(*needed, rate));
    }
  }
  return wanted <= most ? wanted : usual;
}

Status run_bench(const BenchRunOptions& options, BenchResult& result) {
  const auto ended = options.finds_peak ? find_peak(options, result) : run_points(options, result);
  if (!ended) return ended.error();
  result.server = result.points.front().trials.front().samples.server;
  return Done{};
}

}  // namespace muster
