// Doubles or halves until one rate is met and one is missed, then halves the gap between them. The
// gap is halved in the logarithm, since the resolution is relative to the rate.

#include "bench/result/peak_search.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace muster {

double seconds_for_samples(std::uint64_t samples, double rate) {
  constexpr double kMore = 1.3;
  return kMore * static_cast<double>(samples) / rate;
}

void PeakSearch::report(RateOutcome outcome) {
  MUSTER_CHECK(next_.has_value());
  const double tried = *next_;
  if (outcome == RateOutcome::Met) {
    met_ = std::max(met_.value_or(0), tried);
  } else if (outcome == RateOutcome::Unknown) {
    unknown_ = std::max(unknown_.value_or(0), tried);
  } else {
    missed_ = std::min(missed_.value_or(tried), tried);
  }
  const double least = std::max(met_.value_or(0), unknown_.value_or(0));  // 0: none
  if (!missed_) {
    next_ = tried < options_.rate_most ? std::optional(std::min(2 * tried, options_.rate_most))
                                       : std::nullopt;
  } else if (least <= 0) {
    next_ = tried > options_.rate_least ? std::optional(std::max(tried / 2, options_.rate_least))
                                        : std::nullopt;
  } else if (*missed_ <= least * (1 + options_.resolution)) {
    next_ = std::nullopt;
  } else {
    // The geometric middle: the resolution is relative.
    next_ = std::sqrt(least * *missed_);
  }
}

}  // namespace muster
