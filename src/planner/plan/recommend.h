#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "planner/plan/plan.h"
#include "spec/machine.h"
#include "spec/model_weights.h"

namespace muster {

/// Whether a whole copy fits on one device of a machine.
struct DeviceAdvice {
  std::uint32_t device = 0;  // into Machine::devices
  std::uint64_t needed_bytes = 0;
  std::uint64_t usable_bytes = 0;
  std::optional<double> step_seconds;  // where the device's speed is known

  bool fits() const { return needed_bytes <= usable_bytes; }
};

/// The fewest devices of one type that hold the model in one node.
struct HardwareAdvice {
  std::uint32_t device_class = 0;  // into the classes given
  std::uint32_t count = 0;
  std::uint32_t tensor_parallel = 1;
  std::uint32_t pipeline_parallel = 1;
  std::uint64_t largest_used_bytes = 0;  // on the fullest device
  std::optional<double> latency_seconds;
};

struct Recommendation {
  std::optional<std::uint32_t> device;  // the one to choose, into Machine::devices
  std::string because;
  std::vector<DeviceAdvice> devices;     // each device of the machine
  std::vector<HardwareAdvice> hardware;  // by count, then by the memory it takes in all
};

/// The device of `machine` for one copy: of those that hold it the fastest, where speeds are known,
/// then the one with the least room left over, so that larger ones stay free; and what would hold
/// it, of the classes given, in one node of up to 8.
///
/// Errors: those of `make_plan`.
Result<Recommendation> recommend(const ModelDescription& model, const Machine& machine,
                                 const PlanRequest& request, std::span<const DeviceClass> classes);

}  // namespace muster
