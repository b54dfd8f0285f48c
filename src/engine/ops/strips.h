#pragma once

#include <cstddef>

namespace muster::engine {

/// Calls `visit.template operator()<size>(begin)` with `size`, which is 1 to kMax, as a constant.
template <std::size_t kMax, typename Visit>
void visit_with_size(std::size_t size, std::size_t begin, Visit& visit) {
  if constexpr (kMax == 1) {
    visit.template operator()<1>(begin);
  } else if (size == kMax) {
    visit.template operator()<kMax>(begin);
  } else {
    visit_with_size<kMax - 1>(size, begin, visit);
  }
}

/// Cuts `count` into the fewest strips of at most kMax, of sizes that differ by one at most: a last
/// strip of one row would leave most registers idle.
template <std::size_t kMax, typename Visit>
void for_each_strip(std::size_t count, Visit&& visit) {
  const std::size_t strip_count = (count + kMax - 1) / kMax;
  std::size_t begin = 0;
  for (std::size_t strip = 0; strip < strip_count; ++strip) {
    const std::size_t size = count / strip_count + (strip < count % strip_count ? 1 : 0);
    visit_with_size<kMax>(size, begin, visit);
    begin += size;
  }
}

/// One of `count` parts of a run of strips.
struct StripPart {
  std::size_t index = 0;
  std::size_t count = 1;
};

/// Visits those strips of `for_each_strip<kMax>(count, …)` that are the part's, which may be none:
/// strip for strip the same calls as there, so that a row has the same neighbours.
template <std::size_t kMax, typename Visit>
void for_each_strip_of(const StripPart& part, std::size_t count, Visit&& visit) {
  const std::size_t strip_count = (count + kMax - 1) / kMax;
  const std::size_t end = strip_count * (part.index + 1) / part.count;
  for (std::size_t strip = strip_count * part.index / part.count; strip < end; ++strip) {
    const std::size_t least = count / strip_count;
    const std::size_t longer =
        count % strip_count;  // so many strips, the first ones, have one more
    const std::size_t begin = strip * least + (strip < longer ? strip : longer);
    visit_with_size<kMax>(least + (strip < longer ? 1 : 0), begin, visit);
  }
}

}  // namespace muster::engine
