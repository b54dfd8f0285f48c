// What the generator does to its own figures: a server that stands still, and rates at which it
// must not be late, alone and where it cannot be in time.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "bench/result/trial_summary.h"
#include "bench/selftest/selftest_parts.h"

namespace muster {
namespace {

constexpr double kMillisecond = 1e-3;
constexpr double kTail = 0.99;
constexpr double kFreezeRate = 100;
constexpr double kFreezeSeconds = 20;
constexpr double kFreezeSecondsFull = 60;
constexpr double kFrozenTail = 0.3;
constexpr double kRate = 5'000;
constexpr double kRateSeconds = 5;
constexpr double kRateSecondsFull = 20;
constexpr double kRateError = 0.005;

TrialSummary summary_of(const TrialSamples& trial) {
  return summarize_trial(trial, {.is_open_loop = true, .warm_up = {.seconds = 0.0}});
}

// The 99th percentile; its samples are many.
double tail(const std::optional<Distribution>& distribution) {
  return distribution->percentile(kTail)->value;
}

std::string tail_text(double intended, double service) {
  return fmt::format("p99 {:.1f} ms from the intended time, {:.1f} ms from the sending",
                     intended / kMillisecond, service / kMillisecond);
}

struct FreezeTails {
  double intended = 0;
  double service = 0;
};

Result<FreezeTails> freeze_tails(const SelftestOptions& options, bool freezes,
                                 std::uint32_t connections) {
  const double duration = options.is_full ? kFreezeSecondsFull : kFreezeSeconds;
  std::vector<std::string> flags{"--law", "deterministic", "--mean", "0.001"};
  if (freezes) {
    flags.insert(flags.end(), {"--freeze-at", fmt::format("{}", duration / 3), "--freeze", "1"});
  }
  const auto trial =
      MUSTER_TRY(load_null_server(options, flags,
                                  {.arrivals = ArrivalPlan{.rate_begin = kFreezeRate},
                                   .connections_most = connections,
                                   .seconds = duration,
                                   .seed = options.seed}));
  const auto summary = summary_of(trial);
  if (summary.failed_count() > 0) {
    return Error{ErrorKind::Unavailable, fmt::format("{} of {} requests were not answered",
                                                     summary.failed_count(), summary.sent)};
  }
  return FreezeTails{tail(summary.latency), tail(summary.service)};
}

// Threads that compute, one for each core, for as long as it lives.
class BusyThreads {
 public:
  BusyThreads() {
    const auto count = std::max(1U, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        volatile std::uint64_t work = 0;
        while (!is_over_) work = work + 1;
      });
    }
  }
  ~BusyThreads() {
    is_over_ = true;
    for (auto& thread : threads_) thread.join();
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

 private:
  std::atomic<bool> is_over_ = false;
  std::vector<std::thread> threads_;
};

Result<TrialSummary> rate_summary(const SelftestOptions& options) {
  const auto trial =
      MUSTER_TRY(load_null_server(options, {},
                                  {.arrivals = ArrivalPlan{.rate_begin = kRate},
                                   .seconds = options.is_full ? kRateSecondsFull : kRateSeconds,
                                   .seed = options.seed}));
  return summary_of(trial);
}

}  // namespace

SelftestChecks selftest_freeze(const SelftestOptions& options) {
  constexpr std::uint32_t kFew = 4;
  constexpr std::uint32_t kMany = 4096;
  options.on_step("an undisturbed server");
  const auto calm = MUSTER_TRY(freeze_tails(options, false, kFew));
  options.on_step("a server that freezes for a second, four connections");
  const auto few = MUSTER_TRY(freeze_tails(options, true, kFew));
  options.on_step("the same, any number of connections");
  const auto many = MUSTER_TRY(freeze_tails(options, true, kMany));
  return std::vector<SelftestCheck>{
      {.part = "freeze",
       .what = "4 connections, from the intended time",
       .value = few.intended / kMillisecond,
       .measured = tail_text(few.intended, few.service),
       .required = "intended at least 300 ms",
       .is_met = few.intended >= kFrozenTail},
      {.part = "freeze",
       .what = "4 connections, from the sending",
       .value = few.service / kMillisecond,
       .measured = fmt::format("p99 {:.2f} ms; undisturbed {:.2f} ms", few.service / kMillisecond,
                               calm.service / kMillisecond),
       .required = "at most twice undisturbed",
       .is_met = few.service <= 2 * calm.service},
      {.part = "freeze",
       .what = "any number of connections",
       .value = std::min(many.intended, many.service) / kMillisecond,
       .measured = tail_text(many.intended, many.service),
       .required = "both at least 300 ms",
       .is_met = many.intended >= kFrozenTail && many.service >= kFrozenTail}};
}

SelftestChecks selftest_rate(const SelftestOptions& options) {
  options.on_step("5,000 requests a second");
  const auto alone = MUSTER_TRY(rate_summary(options));
  options.on_step("the same beside busy threads");
  TrialSummary crowded;
  {
    const BusyThreads busy;
    crowded = MUSTER_TRY(rate_summary(options));
  }
  const double share = alone.answered_per_second / kRate;
  return std::vector<SelftestCheck>{
      {.part = "rate",
       .what = "5,000/s: answered",
       .value = alone.answered_per_second,
       .measured = fmt::format("{:.1f}/s", alone.answered_per_second),
       .required = "within 0.5 %",
       .is_met = std::abs(share - 1) <= kRateError},
      {.part = "rate",
       .what = "5,000/s: p99 of the send lag",
       .value = alone.generator.lag_p99 / kMillisecond,
       .measured = fmt::format("{:.3f} ms", alone.generator.lag_p99 / kMillisecond),
       .required = "below 1 ms",
       .is_met = alone.generator.lag_p99 < kMillisecond},
      {.part = "rate",
       .what = "beside a busy thread on each core",
       .value = crowded.generator.lag_p99 / kMillisecond,
       .measured = fmt::format("send lag p99 {:.3f} ms, the run is {}",
                               crowded.generator.lag_p99 / kMillisecond,
                               crowded.is_valid() ? "valid" : "invalid"),
       .required = "invalid",
       .is_met = !crowded.is_valid()}};
}

}  // namespace muster
