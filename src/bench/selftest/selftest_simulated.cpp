// The statistics on simulated trials, through the same functions that real trials go through: the
// truth is known, and thousands of runs take seconds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/result/result_diff.h"
#include "bench/result/trial_summary.h"
#include "bench/selftest/selftest_parts.h"
#include "bench/statistics/percentile.h"
#include "bench/statistics/warm_up.h"

namespace muster {
namespace {

constexpr double kPerCent = 100;
constexpr double kMean = 1e-3;  // of simulated service times

double share_of(std::uint64_t count, std::uint64_t all) {
  return static_cast<double>(count) / static_cast<double>(all);
}

Error cancelled() { return {ErrorKind::Cancelled, "cancelled"}; }

// What ten trials of a closed loop say, through the summaries and figures of a real run.
ResultFigures simulated_result(std::uint64_t seed, double mean_seconds) {
  constexpr std::size_t kTrials = 10;
  constexpr double kSeconds = 10;
  ResultFigures::Point figures{.load = "1 client", .trial_count = kTrials};
  for (std::size_t i = 0; i < kTrials; ++i) {
    ServiceTimes services(ServiceLaw::Exponential, mean_seconds, seed * kTrials + i);
    const auto samples = stepped_trial(services, kSeconds, [](double) { return 1.0; });
    const auto summary = summarize_trial(samples, {.warm_up = {.seconds = 0.0}});
    for (const auto& [name, value] : figures_of(summary)) figures.figures[name].push_back(value);
  }
  return {.environment = {}, .points = {std::move(figures)}};
}

struct Verdicts {
  std::uint64_t none = 0;
  std::uint64_t worse = 0;
};

// B against A in `pairs` pairs; B's service times are `slowdown` times A's.
Result<Verdicts> simulated_verdicts(const SelftestOptions& options, std::uint64_t pairs,
                                    double slowdown) {
  Verdicts verdicts;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    if (options.is_cancelled()) return cancelled();
    const auto seed = (options.seed * pairs + i) * 2;
    const auto a = simulated_result(seed, kMean);
    const auto b = simulated_result(seed + 1, kMean * slowdown);
    const auto difference = MUSTER_TRY(compare_results(a, b, {}));
    verdicts.worse += difference.has_worse() ? 1 : 0;
    verdicts.none += std::ranges::all_of(difference.figures, [](const FigureDifference& one) {
      return one.comparison.difference == Difference::None;
    });
  }
  return verdicts;
}

}  // namespace

SelftestChecks selftest_intervals(const SelftestOptions& options) {
  constexpr std::size_t kSamples = 1'000;
  constexpr double kShare = 0.95;
  const std::uint64_t runs = options.is_full ? 10'000 : 2'000;
  const double truth = -std::log(1 - kShare);  // of the exponential law with mean 1
  std::uint64_t covered = 0;
  options.on_step(fmt::format("{} intervals of the 95th percentile", runs));
  std::vector<double> values(kSamples);
  for (std::uint64_t run = 0; run < runs; ++run) {
    if (options.is_cancelled()) return cancelled();
    RandomStream random(options.seed * runs + run);
    for (double& value : values) value = random.exponential();
    const auto estimate = *summarize(values)->percentile(kShare);
    covered += *estimate.low <= truth && truth < *estimate.high;
  }
  // With fewer runs the share itself is uncertain.
  const double share = share_of(covered, runs);
  const double slack = options.is_full ? 0 : 3 * std::sqrt(0.05 * 0.95 / static_cast<double>(runs));
  std::vector<SelftestCheck> checks{
      {.part = "intervals",
       .what = "95 % intervals of p95 that hold the true one",
       .value = kPerCent * share,
       .measured = fmt::format("{:.2f} % of {}", kPerCent * share, runs),
       .required = options.is_full ? "95 % to 97 %" : "95 % to 97 %, within the error of the runs",
       .is_met = share >= 0.95 - slack && share <= 0.97 + slack}};
  for (const auto& [percentile, needed] :
       {std::pair(0.5, 6U), {0.9, 36U}, {0.95, 72U}, {0.99, 368U}}) {
    const std::vector<double> few(needed, 1.0);
    const bool is_right = !summarize(std::span(few).first(needed - 1))->percentile(percentile) &&
                          summarize(few)->percentile(percentile);
    checks.push_back(
        {.part = "intervals",
         .what = fmt::format("p{:.0f} needs {} samples", kPerCent * percentile, needed),
         .value = static_cast<double>(needed),
         .measured = is_right ? "none with one fewer" : "not so",
         .required = "none with one fewer",
         .is_met = is_right});
  }
  return checks;
}

SelftestChecks selftest_compare(const SelftestOptions& options) {
  const std::uint64_t pairs = options.is_full ? 100 : 20;
  constexpr double kPlanted = 1.03;
  options.on_step(
      fmt::format("{} pairs of equal servers, {} with a difference of 3 %", pairs, pairs));
  const auto equal = MUSTER_TRY(simulated_verdicts(options, pairs, 1));
  const auto planted = MUSTER_TRY(simulated_verdicts(options, pairs, kPlanted));
  // One false alarm in 20 pairs is 5 %.
  const double equal_least = options.is_full ? 0.97 : 0.95;
  return std::vector<SelftestCheck>{
      {.part = "compare",
       .what = "equal servers: no difference",
       .value = static_cast<double>(equal.none),
       .measured = fmt::format("{} of {}", equal.none, pairs),
       .required = fmt::format("at least {:.0f} %", kPerCent * equal_least),
       .is_met = share_of(equal.none, pairs) >= equal_least},
      {.part = "compare",
       .what = "3 % slower: found, ten trials a side",
       .value = static_cast<double>(planted.worse),
       .measured = fmt::format("{} of {}", planted.worse, pairs),
       .required = "at least 95 %",
       .is_met = share_of(planted.worse, pairs) >= 0.95}};
}

SelftestChecks selftest_warm_up(const SelftestOptions& options) {
  constexpr double kSeconds = 60;
  constexpr double kRamp = 10;
  constexpr double kHeight = 3;  // a request takes three times as long at first
  constexpr double kLostMost = 0.05;
  const std::uint64_t runs = options.is_full ? 1'000 : 100;
  options.on_step(fmt::format("{} ramps of ten seconds", runs));
  std::uint64_t cut = 0;
  std::uint64_t steady = 0;
  double lost = 0;
  double lost_without = 0;
  for (std::uint64_t run = 0; run < runs; ++run) {
    if (options.is_cancelled()) return cancelled();
    ServiceTimes services(ServiceLaw::Exponential, kMean, options.seed * runs + run);
    const auto ramp = summarize_trial(
        stepped_trial(
            services, kSeconds,
            [](double at) { return at < kRamp ? 1 + (kHeight - 1) * (1 - at / kRamp) : 1.0; }),
        {});
    const auto level =
        summarize_trial(stepped_trial(services, kSeconds, [](double) { return 1.0; }), {});
    cut += ramp.warm_up_seconds >= kRamp;
    steady += ramp.is_steady.value_or(false);
    lost += std::max(0.0, ramp.warm_up_seconds - kRamp) / (kSeconds - kRamp);
    lost_without += level.warm_up_seconds / kSeconds;
  }
  lost /= static_cast<double>(runs);
  lost_without /= static_cast<double>(runs);
  return std::vector<SelftestCheck>{
      {.part = "warm-up",
       .what = "ramps of 10 s that are cut whole",
       .value = kPerCent * share_of(cut, runs),
       .measured = fmt::format("{:.1f} % of {}", kPerCent * share_of(cut, runs), runs),
       .required = "at least 95 %",
       .is_met = share_of(cut, runs) >= 0.95},
      {.part = "warm-up",
       .what = "steady data lost with them",
       .value = kPerCent * lost,
       .measured = fmt::format("{:.2f} %", kPerCent * lost),
       .required = "at most 5 %",
       .is_met = lost <= kLostMost},
      {.part = "warm-up",
       .what = "steady data lost where there is no ramp",
       .value = kPerCent * lost_without,
       .measured = fmt::format("{:.2f} %", kPerCent * lost_without),
       .required = "at most 5 %",
       .is_met = lost_without <= kLostMost},
      {.part = "warm-up",
       .what = "what is kept is found steady",
       .value = kPerCent * share_of(steady, runs),
       .measured = fmt::format("{:.1f} % of {}", kPerCent * share_of(steady, runs), runs),
       .required = "at least 95 %",
       .is_met = share_of(steady, runs) >= 0.95}};
}

}  // namespace muster
