#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/result/bench_result.h"
#include "sweep/point_record.h"

namespace muster {

/// What was done in all trials of a point, warm-up included: the window of the energy.
struct PointWork {
  std::uint64_t requests = 0;
  std::uint64_t answered = 0;
  /// Of the prompts; nullopt: of some answer the server does not say them.
  std::optional<std::uint64_t> input_tokens = {};
  /// Of the replies, or the pieces that they came in; nullopt: no answer had any.
  std::optional<std::uint64_t> output_tokens = {};
  double seconds = 0;  // from the first request of each trial to its last answer

  /// Prompts and replies; nullopt where those of the prompts are not known.
  std::optional<std::uint64_t> tokens() const {
    if (!input_tokens) return std::nullopt;
    return *input_tokens + output_tokens.value_or(0);
  }
};

/// Threads: pure.
PointWork work_of(const BenchPoint& point);

/// Each device's trials, by its name.
using DevicesOverTrials = std::map<std::string, std::vector<const PointDevice*>>;

/// The devices of `telemetry`, which outlives the result; those that every trial has.
DevicesOverTrials devices_over_trials(const std::vector<TrialTelemetry>& telemetry);

/// The joules of one device in all its trials; nullopt where one of them has none.
std::optional<double> joules_of(const std::vector<const PointDevice*>& trials);

/// `energy` of a record: the point's devices (its GPUs, else the CPUs), and the machine's CPUs.
/// Joules without a counter and without power readings are null, with the reason, and so are those
/// of a point one of whose devices was not watched. Grams of CO2 need an intensity that the file
/// states. Threads: pure.
nlohmann::ordered_json energy_json(const PointReport& report, const DevicesOverTrials& devices,
                                   const PointWork& work, double texts_per_request);

}  // namespace muster
