#include "server/http_statistics.h"

#include <algorithm>

namespace muster {

void HttpStatistics::count(const Route& route, int status, Duration took) {
  OfRoute& of_route = routes_[index_of(route)];
  ++of_route.statuses[status];
  const double s = seconds(took);
  of_route.seconds += s;
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), s);
  ++of_route.counts[static_cast<std::size_t>(bound - kBounds.begin())];
}

}  // namespace muster
