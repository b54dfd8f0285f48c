// Which points are still to be measured. A point is known by the hash of everything that it
// depends on, so one that was measured under other settings is another point and counts for nothing
// here.
#include "sweep/sweep_progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

Result<std::vector<std::size_t>> points_to_measure(std::span<const SweepPoint> points,
                                                   const std::map<std::string, bool>& kept,
                                                   SweepStart start, std::string_view place) {
  const auto there = static_cast<std::size_t>(std::ranges::count_if(
      points, [&](const SweepPoint& point) { return kept.contains(point.id); }));
  if (start == SweepStart::Fresh && there > 0) {
    return invalid_error(
        fmt::format("{} have {} of the {} points already: --resume measures what is missing, "
                    "--restart drops them and measures all",
                    place, there, points.size()));
  }
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto found = kept.find(points[i].id);
    const bool is_done = found != kept.end() && found->second;
    if (start == SweepStart::Restart || !is_done) wanted.push_back(i);
  }
  return wanted;
}

}  // namespace muster
