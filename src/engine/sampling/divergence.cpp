// Log-probabilities are taken from the largest logit, so that no exponential overflows.

#include "engine/sampling/divergence.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace muster::engine {
namespace {

// log sum exp: what a logit has to be less by to be a log-probability.
double log_sum(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  return largest + std::log(sum);
}

}  // namespace

double divergence(std::span<const float> reference, std::span<const float> logits) {
  const double of_reference = log_sum(reference);
  const double of_logits = log_sum(logits);
  double sum = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double log_p = double{reference[i]} - of_reference;
    const double log_q = double{logits[i]} - of_logits;
    sum += std::exp(log_p) * (log_p - log_q);
  }
  // Never below 0 but by a rounding.
  return sum < 0 ? 0 : sum;
}

}  // namespace muster::engine
