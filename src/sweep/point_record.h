#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/result/bench_result.h"
#include "spec/telemetry.h"
#include "sweep/sweep_points.h"
#include "telemetry/energy_window.h"
#include "telemetry/statistics.h"

namespace muster {

/// Which devices a point asked for, and which of them it has.
struct PointAvailability {
  std::vector<std::string> requested;
  std::vector<std::string> available;
  std::vector<std::string> unavailable;
  std::vector<std::string> errors;  // why, for each of `unavailable`: "cuda:3: no such device"

  bool all_available() const { return unavailable.empty(); }
};

/// What one device did during one trial.
struct PointDevice {
  DeviceIdentity identity;
  std::string name;     // shown_name
  bool is_own = false;  // of the point; else of the machine around it
  DeviceUse use = {};
  WindowEnergy energy = {};
};

/// The devices during one trial, from before its first request to behind its last answer.
struct TrialTelemetry {
  std::vector<PointDevice> devices;  // empty: nothing was watched
  /// Nobody else's process was seen on the point's devices; nullopt: it cannot be told.
  std::optional<bool> is_exclusive = {};
  std::string missing_reason = {};  // why nothing was watched
};

/// Everything that a record is made of.
struct PointReport {
  const SweepPoint* point = nullptr;
  std::string_view task;
  PointAvailability availability;
  const BenchResult* result = nullptr;    // of one load
  std::vector<TrialTelemetry> telemetry;  // of each trial; empty: nothing was watched
  std::string unwatched_reason;           // why not
  /// Of a server that was started here: what it computed in, and its settings beside the file's.
  std::optional<std::string> precision = {};
  std::string settings = {};
  std::vector<std::string> invalid_reasons;  // beside a generator that was late
};

/// Why not every trial was watched; empty: each was. Threads: pure.
std::string unwatched_trial_reason(const PointReport& report);

/// A point as its file and the table have it: docs/formats/bench-run.md. Every key is always there,
/// with null for what is not known, but for those of `gpu_stats`: a member for each GPU of the
/// point.
///
/// Figures of several trials: counts and joules are sums; rates, latencies and readings are the
/// means over the trials; `min` and `max` are the least and the most of all. Threads: pure.
nlohmann::ordered_json point_record(const PointReport& report);

/// The value of a key in a part of a record, "summary" and "trials"; null where a record, which may
/// be of another version or changed by hand, has none. Threads: pure.
nlohmann::ordered_json record_value(const nlohmann::ordered_json& record, std::string_view part,
                                    std::string_view key);

}  // namespace muster
