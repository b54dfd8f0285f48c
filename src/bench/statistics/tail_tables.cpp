// Boost.Math behind four functions, so that one file alone pays for its headers.
#include "bench/statistics/tail_tables.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>

namespace muster {
namespace {

using boost::math::policies::domain_error;
using boost::math::policies::errno_on_error;
using boost::math::policies::evaluation_error;
using boost::math::policies::overflow_error;

// No exception leaves this folder; the arguments of its callers lie within the domains.
using Quiet =
    boost::math::policies::policy<domain_error<errno_on_error>, overflow_error<errno_on_error>,
                                  evaluation_error<errno_on_error>>;

}  // namespace

double normal_quantile(double share) {
  return boost::math::quantile(boost::math::normal_distribution<double, Quiet>(), share);
}

double student_quantile(double share, double degrees) {
  return boost::math::quantile(boost::math::students_t_distribution<double, Quiet>(degrees), share);
}

double chi_squared_quantile(double share, double degrees) {
  return boost::math::quantile(boost::math::chi_squared_distribution<double, Quiet>(degrees),
                               share);
}

// Source: Abramowitz and Stegun, 26.5.24: P(K <= k) = I_{1-p}(n - k, k + 1).
double binomial_cdf(std::int64_t successes, std::uint64_t trials, double share) {
  if (successes < 0) return 0;
  const auto count = static_cast<std::uint64_t>(successes);
  if (count >= trials) return 1;
  return boost::math::ibeta(static_cast<double>(trials - count), static_cast<double>(count + 1),
                            1 - share, Quiet());
}

}  // namespace muster
