// The one part with an exact answer: the server's law is known, so is what each request must take.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/result/environment.h"
#include "bench/selftest/quiet_trial.h"
#include "bench/selftest/selftest_parts.h"
#include "bench/statistics/percentile.h"

namespace muster {
namespace {

constexpr std::array kLoads{0.5, 0.8, 0.95};
constexpr std::array kShares{0.5, 0.95, 0.99};
// Of the service times: 100,000 requests take one and a half to three minutes, and what a machine
// stalls for by itself (1 to 4 ms, a few times a second) weighs little in a percentile.
constexpr double kMean = 0.8e-3;
constexpr std::uint64_t kRequests = 5'000;
constexpr std::uint64_t kRequestsFull = 100'000;
constexpr double kErrorShare = 0.01;
constexpr double kErrorSeconds = 0.3e-3;
constexpr double kMillisecond = 1e-3;
constexpr double kPerCent = 100;

struct Expected {
  std::vector<double> sojourns;
  double sending_seconds = 0;
};

// From the same seeds, with nothing of the generator's own.
Expected expected_sojourns(ServiceLaw law, const ArrivalPlan& plan, std::uint64_t count,
                           std::uint64_t seed) {
  ArrivalSchedule schedule(plan, seed);
  ServiceTimes services(law, kMean, seed + 1);
  std::vector<double> arrivals;
  std::vector<double> times;
  for (std::uint64_t i = 0; i < count; ++i) {
    arrivals.push_back(seconds(*schedule.next()));
    times.push_back(services.next());
  }
  return {lindley_sojourns(arrivals, times), arrivals.back()};
}

std::string interval_text(const Estimate& estimate) {
  const auto end = [](const std::optional<double>& value, std::string_view unknown) {
    return value ? fmt::format("{:.3f}", *value / kMillisecond) : std::string(unknown);
  };
  return fmt::format("[{}, {}]", end(estimate.low, "?"), end(estimate.high, "?"));
}

void judge(const std::string& queue, double share, const Distribution& measured,
           const Distribution& expected, double closed_form, std::vector<SelftestCheck>& checks) {
  const auto& found = *measured.percentile(share);
  const double wanted = expected.percentile(share)->value;
  const double error = found.value - wanted;
  const auto name = fmt::format("{}: p{:.0f}", queue, share * kPerCent);
  checks.push_back({.part = "queue",
                    .what = name,
                    .value = error / kMillisecond,
                    .measured = fmt::format("{:.3f} ms, Lindley {:.3f}: {:+.3f} ms ({:+.1f} %)",
                                            found.value / kMillisecond, wanted / kMillisecond,
                                            error / kMillisecond, kPerCent * error / wanted),
                    .required = "within 1 % or 0.3 ms",
                    .is_met = std::abs(error) <= std::max(kErrorSeconds, kErrorShare * wanted)});
  // The closed form knows nothing of the time that HTTP takes; what was measured beyond Lindley is
  // taken off the interval.
  const auto low = found.low ? std::optional(*found.low - error) : std::nullopt;
  const auto high = found.high ? std::optional(*found.high - error) : std::nullopt;
  checks.push_back({.part = "queue",
                    .what = name + ", closed form in the interval",
                    .value = closed_form / kMillisecond,
                    .measured = fmt::format("{:.3f} ms in {}", closed_form / kMillisecond,
                                            interval_text({found.value, low, high})),
                    .required = "inside, in 95 of 100",
                    .is_met = (!low || *low <= closed_form) && (!high || closed_form <= *high)});
}

}  // namespace

SelftestChecks selftest_queue(ServiceLaw law, const SelftestOptions& options) {
  std::vector<SelftestCheck> checks;
  const auto count = options.is_full ? kRequestsFull : kRequests;
  for (const double load : kLoads) {
    const auto queue =
        fmt::format("{} at load {}", law == ServiceLaw::Deterministic ? "M/D/1" : "M/M/1", load);
    options.on_step(queue);
    const ArrivalPlan plan{.rate_begin = load / kMean};
    const auto expected = expected_sojourns(law, plan, count, options.seed);
    const auto run = [&]() -> Result<WatchedTrial> {
      const MachineWatch machine;
      auto samples = MUSTER_TRY(
          load_null_server(options,
                           {"--law", std::string(service_law_name(law)), "--mean",
                            fmt::format("{}", kMean), "--seed", std::to_string(options.seed + 1)},
                           {.arrivals = plan,
                            .seconds = 10 * expected.sending_seconds,
                            .requests_most = count,
                            .seed = options.seed}));
      return WatchedTrial{std::move(samples), machine.use(0).stolen_share};
    };
    const auto trial = MUSTER_TRY(quietest_trial(run, [&](double stolen) {
      options.on_step(
          fmt::format("{} again: the hypervisor gave {:.2f} % of the processors to others", queue,
                      kPerCent * stolen));
    }));
    std::vector<double> latencies;
    for (const auto& sample : trial.samples) {
      if (sample.is_answered()) latencies.push_back(sample.latency());
    }
    if (latencies.size() != count) {
      return Error{ErrorKind::Unavailable, fmt::format("{}: {} of {} requests were answered", queue,
                                                       latencies.size(), count)};
    }
    const auto measured = *summarize(latencies);
    const auto wanted = *summarize(expected.sojourns);
    for (const double share : kShares) {
      judge(queue, share, measured, wanted, sojourn_percentile(law, kMean, load, share), checks);
    }
  }
  return checks;
}

}  // namespace muster
