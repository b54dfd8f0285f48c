#include "bench/statistics/queue_laws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace muster {
namespace {

TEST(LindleySojourns, EachWaitsForTheOneBeforeIt) {
  // Ends: 2, 2.5, 3.5; then the server is idle until 10.
  EXPECT_EQ(lindley_sojourns(std::vector<double>{0, 1, 2, 10}, std::vector<double>{2, 0.5, 1, 3}),
            (std::vector<double>{2, 1.5, 1.5, 3}));
}

TEST(SojournPercentile, ExponentialServiceIsExponential) {
  EXPECT_NEAR(sojourn_percentile(ServiceLaw::Exponential, 1, 0.5, 0.5), 2 * std::log(2), 1e-12);
  EXPECT_NEAR(sojourn_percentile(ServiceLaw::Exponential, 0.002, 0.8, 0.99), 0.01 * std::log(100),
              1e-12);
}

// Erlang's form of the waiting time, D = 1: (1 - r) e^{rt} up to 1, and from there to 2
// (1 - r) (e^{rt} - r (t - 1) e^{r (t - 1)}).
TEST(SojournPercentile, DeterministicServiceIsErlangs) {
  constexpr double kLoad = 0.8;
  const double at_half = 0.2 * std::exp(kLoad * 0.5);
  EXPECT_NEAR(sojourn_percentile(ServiceLaw::Deterministic, 1, kLoad, at_half), 1.5, 1e-9);
  const double at_one_and_half =
      0.2 * (std::exp(kLoad * 1.5) - kLoad * 0.5 * std::exp(kLoad * 0.5));
  EXPECT_NEAR(sojourn_percentile(ServiceLaw::Deterministic, 1, kLoad, at_one_and_half), 2.5, 1e-9);
  // Half of all find nobody there at a load of a half.
  EXPECT_NEAR(sojourn_percentile(ServiceLaw::Deterministic, 3, 0.5, 0.5), 3, 1e-6);
}

TEST(SojournPercentile, IsWhatTheRecursionGives) {
  for (const auto law : {ServiceLaw::Deterministic, ServiceLaw::Exponential}) {
    RandomStream gaps(1);
    ServiceTimes times(law, 1, 2);
    std::vector<double> arrivals;
    std::vector<double> services;
    double at = 0;
    for (int i = 0; i < 200'000; ++i) {
      arrivals.push_back(at += gaps.exponential() / 0.7);
      services.push_back(times.next());
    }
    auto sojourns = lindley_sojourns(arrivals, services);
    std::ranges::sort(sojourns);
    for (const double share : {0.5, 0.9, 0.99}) {
      const double found = sojourns[static_cast<std::size_t>(share * 200'000)];
      const double expected = sojourn_percentile(law, 1, 0.7, share);
      EXPECT_NEAR(found / expected, 1, 0.05) << service_law_name(law) << " " << share;
    }
  }
}

TEST(SojournPercentile, IsStableNearFullLoad) {
  // Heavy traffic: the tail falls with the rate that solves load (e^x - 1) = x; of a load of 0.99
  // that is 0.0201 for each service, so a decade takes 114.
  const double p90 = sojourn_percentile(ServiceLaw::Deterministic, 1, 0.99, 0.9);
  const double p99 = sojourn_percentile(ServiceLaw::Deterministic, 1, 0.99, 0.99);
  EXPECT_NEAR(p99 - p90, std::log(10) / 0.0201, 2);
}

TEST(ServiceLaw, HasNames) {
  EXPECT_EQ(service_law_of("exponential"), ServiceLaw::Exponential);
  EXPECT_EQ(service_law_of("deterministic"), ServiceLaw::Deterministic);
  EXPECT_FALSE(service_law_of("normal"));
}

}  // namespace
}  // namespace muster
