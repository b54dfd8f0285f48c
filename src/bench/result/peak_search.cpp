// Doubles or halves until one rate is met and one is missed, then halves the gap between them. The
// gap is halved in the logarithm, since the resolution is relative to the rate.

#include "bench/result/peak_search.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace muster {

void PeakSearch::report(bool is_met) {
  MUSTER_CHECK(next_.has_value());
  const double tried = *next_;
  if (is_met) {
    met_ = std::max(met_.value_or(0), tried);
  } else {
    missed_ = std::min(missed_.value_or(tried), tried);
  }
  if (!missed_) {
    next_ = tried < options_.rate_most ? std::optional(std::min(2 * tried, options_.rate_most))
                                       : std::nullopt;
  } else if (!met_) {
    next_ = tried > options_.rate_least ? std::optional(std::max(tried / 2, options_.rate_least))
                                        : std::nullopt;
  } else if (*missed_ <= *met_ * (1 + options_.resolution)) {
    next_ = std::nullopt;
  } else {
    // The geometric middle: the resolution is relative.
    next_ = std::sqrt(*met_ * *missed_);
  }
}

}  // namespace muster
