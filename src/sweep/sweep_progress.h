#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sweep/sweep_points.h"

namespace muster {

/// What is to become of results that are there.
enum class SweepStart : std::uint8_t {
  Fresh,    // there are none of these points; those of other files stay
  Resume,   // what is missing or not valid is measured
  Restart,  // all of it is dropped
};

/// The points that are to be measured, as indices in their order.
///
/// kept: of the points that are there, whether each is valid; false for one of which the table has
/// a row alone. place: where they are, for the message: "x.csv and x.points". Errors:
/// InvalidArgument (a fresh start where some of the points are there, with the two flags). Threads:
/// pure.
Result<std::vector<std::size_t>> points_to_measure(std::span<const SweepPoint> points,
                                                   const std::map<std::string, bool>& kept,
                                                   SweepStart start, std::string_view place);

}  // namespace muster
