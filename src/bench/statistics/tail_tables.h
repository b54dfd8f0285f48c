#pragma once

#include <cstdint>

namespace muster {

/// The quantile of the normal distribution with mean 0 and variance 1. Threads: pure.
double normal_quantile(double share);

/// The quantile of Student's t distribution: P(T <= result) = share. Threads: pure.
double student_quantile(double share, double degrees);

/// The quantile of the chi-squared distribution. Threads: pure.
double chi_squared_quantile(double share, double degrees);

/// P(K <= successes) for K binomial; 0 for a negative number, 1 from `trials` on. Threads: pure.
double binomial_cdf(std::int64_t successes, std::uint64_t trials, double share);

}  // namespace muster
