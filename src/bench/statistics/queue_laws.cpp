// Exact sojourn times of queues with one server and Poisson arrivals, by which the generator's own
// figures are checked. With exponential services the law is closed; with constant ones the
// distribution of the number in the system is summed, in terms that are all positive, so nothing
// cancels at high load. Source: Lindley 1952 for the recursion; Franx 2001, "A simple solution for
// the M/D/c waiting time distribution".

#include "bench/statistics/queue_laws.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace muster {
namespace {

// P(n requests in the system), n = 0, 1, …, until all but 1e-12 is covered, for M/D/1.
//
//   x_i = (x_0 A_i + sum over j = 1 .. i-1 of x_j A_{i+1-j}) / (1 - A_1),  x_0 = 1 - load
//
// A_k = P(at least k arrivals during a service). It is the chain that departures leave behind;
// arrivals find the same, as the number goes up and down by one, and Poisson arrivals find what
// holds at any time.
std::vector<double> numbers_in_system(double load) {
  constexpr double kLeftOut = 1e-12;
  constexpr std::size_t kMost = 100'000;  // at a load of 0.9999 some ten thousand are enough
  std::vector<double> at_least{1};        // A_0
  std::vector<double> numbers{1 - load};
  double term = std::exp(-load);  // P(k arrivals)
  double covered = numbers.front();
  for (std::size_t i = 1; covered < 1 - kLeftOut && i < kMost; ++i) {
    at_least.push_back(std::max(0.0, at_least.back() - term));
    term *= load / static_cast<double>(i);
    double sum = numbers[0] * at_least[i];
    for (std::size_t j = 1; j < i; ++j) sum += numbers[j] * at_least[i + 1 - j];
    numbers.push_back(sum / (1 - at_least[1]));
    covered += numbers.back();
  }
  return numbers;
}

// P(waiting time <= x services) for M/D/1; below: P(at most n in the system), n = 0, 1, …
double waiting_cdf(double load, double x, const std::vector<double>& below) {
  const double k = std::floor(x) + 1;
  const double rate = load * (k - x);
  double term = std::exp(-rate);
  double sum = 0;
  for (std::size_t j = 0; static_cast<double>(j) < k; ++j) {
    // At most k - 1 - j wait, and one is served.
    const auto in_system = static_cast<std::size_t>(k) - j;
    sum += term * below[std::min(in_system, below.size() - 1)];
    term *= rate / static_cast<double>(j + 1);
  }
  return sum;
}

// The distribution only grows, so bisection finds the percentile; the upper end is doubled until it
// lies above.
double deterministic_percentile(double load, double share) {
  auto below = numbers_in_system(load);
  for (std::size_t i = 1; i < below.size(); ++i) below[i] += below[i - 1];
  double high = 1;
  while (waiting_cdf(load, high, below) < share) high *= 2;
  double low = 0;
  constexpr int kHalvings = 60;  // to the last bits of a double
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (waiting_cdf(load, middle, below) < share ? low : high) = middle;
  }
  return high + 1;  // and the service itself
}

}  // namespace

std::string_view service_law_name(ServiceLaw law) {
  return law == ServiceLaw::Deterministic ? "deterministic" : "exponential";
}

std::optional<ServiceLaw> service_law_of(std::string_view name) {
  for (const auto law : {ServiceLaw::Deterministic, ServiceLaw::Exponential}) {
    if (service_law_name(law) == name) return law;
  }
  return std::nullopt;
}

// A request begins when it has come and the one before it has ended.
std::vector<double> lindley_sojourns(std::span<const double> arrivals,
                                     std::span<const double> services) {
  MUSTER_CHECK(arrivals.size() == services.size());
  std::vector<double> sojourns;
  sojourns.reserve(arrivals.size());
  double end = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    end = std::max(arrivals[i], end) + services[i];
    sojourns.push_back(end - arrivals[i]);
  }
  return sojourns;
}

double sojourn_percentile(ServiceLaw law, double mean_seconds, double load, double share) {
  MUSTER_CHECK(load > 0 && load < 1 && share > 0 && share < 1);
  if (law == ServiceLaw::Exponential) return -std::log(1 - share) * mean_seconds / (1 - load);
  return mean_seconds * deterministic_percentile(load, share);
}

}  // namespace muster
