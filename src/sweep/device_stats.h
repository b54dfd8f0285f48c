#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sweep/point_energy.h"

namespace muster {

/// `cpu_stats` of a record: the CPUs of the machine, while requests were under way.
///
/// seconds: how long that was, for the reason. none: why nothing was watched; empty: it was.
/// Threads: pure.
nlohmann::ordered_json cpu_stats_json(const DevicesOverTrials& devices, double seconds,
                                      const std::string& none);

/// `gpu_stats`: a member for each GPU of the point. Threads: pure.
nlohmann::ordered_json gpu_stats_json(const DevicesOverTrials& devices, double seconds);

/// The keys of one GPU in `gpu_stats`, in their order.
std::vector<std::string> gpu_stat_keys();

}  // namespace muster
