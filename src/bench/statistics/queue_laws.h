#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/statistics/random_stream.h"

namespace muster {

/// How long a queue's single server is busy with a request.
enum class ServiceLaw : std::uint8_t { Deterministic, Exponential };

/// "deterministic", "exponential". Threads: pure.
std::string_view service_law_name(ServiceLaw law);
std::optional<ServiceLaw> service_law_of(std::string_view name);

/// Service times in the order in which requests come, fixed by the seed.
class ServiceTimes {
 public:
  ServiceTimes(ServiceLaw law, double mean_seconds, std::uint64_t seed)
      : law_(law), mean_seconds_(mean_seconds), random_(seed) {}

  double next() {
    return law_ == ServiceLaw::Deterministic ? mean_seconds_
                                             : mean_seconds_ * random_.exponential();
  }

 private:
  ServiceLaw law_;
  double mean_seconds_;
  RandomStream random_;
};

/// How long each request takes from its arrival to its end, in a queue with one server and no other
/// order than that of arrival.
///
///   end_i = max(arrival_i, end_{i-1}) + service_i
///
/// arrivals: ascending. Both in seconds, of the same size. Threads: pure.
/// Source: Lindley 1952, "The theory of queues with a single server".
std::vector<double> lindley_sojourns(std::span<const double> arrivals,
                                     std::span<const double> services);

/// The percentile of the time from arrival to end, in seconds, of a queue that has run for ever:
/// Poisson arrivals at `load` / `mean_seconds`, one server, first come first served.
///
/// Exponential service (M/M/1): the time is exponential with mean mean_seconds / (1 - load).
/// Deterministic service (M/D/1): Franx's sum, whose terms are all positive, over the numbers of
/// requests in the system, which come by Ramaswami's recursion for the same reason.
///
/// load: above 0, below 1. share: above 0, below 1. Threads: pure.
/// Source: Kleinrock 1975, "Queueing Systems", volume 1, section 5.12 (M/M/1); Franx 2001, "A
/// simple solution for the M/D/c waiting time distribution", Operations Research Letters 29;
/// Ramaswami 1988, "A stable recursion for the steady state vector in Markov chains of M/G/1 type".
double sojourn_percentile(ServiceLaw law, double mean_seconds, double load, double share);

}  // namespace muster
