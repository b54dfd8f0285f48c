#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "base/clock.h"
#include "server/routes.h"
#include "serving/inference_service.h"

namespace muster {

/// What was answered, by route and status, and how long it took.
///
/// Threads: owned by the loop.
class HttpStatistics {
 public:
  /// Seconds; the last count is of all above.
  static constexpr auto kBounds = ServiceStatus::kBounds;

  struct OfRoute {
    std::map<int, std::uint64_t> statuses;  // 499: the client went first
    std::array<std::uint64_t, kBounds.size() + 1> counts{};
    double seconds = 0;
  };

  void count(const Route& route, int status, Duration took);
  /// A request that had no route: 404, 405; or could not be read.
  void count_stray(int status) { ++strays_[status]; }

  const OfRoute& of(const Route& route) const { return routes_[index_of(route)]; }
  const std::map<int, std::uint64_t>& strays() const { return strays_; }

 private:
  std::array<OfRoute, kRouteCount> routes_{};
  std::map<int, std::uint64_t> strays_;
};

}  // namespace muster
