#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "scheduler/admission.h"
#include "scheduler/dispatcher.h"

namespace muster {

/// A device of virtual time. A batch takes `batch_overhead` + its tokens / `tokens_per_second` in
/// one lane; lanes do not slow each other down.
struct SimulatedDevice {
  DispatchDevice state;  // what the dispatcher is told when the device is well
  double tokens_per_second = 1000;
  Duration batch_overhead{};
  Duration start_time = std::chrono::milliseconds(500);  // from the start of a worker until ready
};

enum class SimulatedFaultKind : std::uint8_t {
  Killed,          // from outside
  Crashes,         // of its own fault
  Hangs,           // answers nothing more until it is killed for its silence
  Slow,            // by `factor`, for `length`
  Fails,           // at every batch and at its canary, until its worker is started again
  FailsButCanary,  // at every batch that is not its canary, likewise
};

struct SimulatedFault {
  TimePoint at;
  std::size_t device = 0;
  SimulatedFaultKind kind = SimulatedFaultKind::Killed;
  double factor = 1;
  Duration length{};
};

struct SimulatedText {
  TimePoint at;  // when it comes
  DispatchItem item;
  double cost_factor = 1;             // what it takes, of what its tokens say
  bool kills = false;                 // the worker that computes it
  std::optional<TimePoint> leaves{};  // whoever asked goes away
};

struct SimulationInput {
  DispatchOptions dispatch{};
  std::optional<AdmissionOptions> admission{};  // nullopt: all texts are let in
  std::vector<SimulatedDevice> devices{};
  std::vector<SimulatedText> texts{};  // by time; keys are their indices
  std::vector<SimulatedFault> faults{};
};

struct SimulationResult {
  std::vector<double> response_seconds;     // of the texts that were answered, as they were
  std::vector<std::uint64_t> texts_served;  // by device
  std::vector<double> busy_seconds;         // by device: of all its lanes
  double end_seconds = 0;                   // when the last text was answered
  std::uint64_t failed_count = 0;           // texts that were found to kill
  std::uint64_t refused_count = 0;          // by admission
  std::uint64_t cancelled_count = 0;        // gone before they were computed, or meanwhile
  std::uint64_t death_count = 0;            // of workers
  std::uint64_t queued_tokens_peak = 0;
  std::vector<std::string> violations;  // of what must always hold; empty when all is well
};

/// Runs the dispatcher, its cost models, admission and the pure rules of the fleet (feeding,
/// silence, the fate of an ended worker's batches, blame, restarts) on virtual time and devices:
/// the code that serves, where workers, canaries and rows are only arithmetic. The same input gives
/// the same result.
///
/// Checked at each step: no text is answered, failed or cancelled twice or given out while it is
/// with another device; no batch is longer than allowed and no device has more than its slots; the
/// books agree with what really waits and runs; only a text that was in two deaths or failed
/// batches fails, and only one that kills where workers do not die by themselves; what admission
/// lets in is within its bounds. At the end: no text is lost.
SimulationResult simulate(const SimulationInput& input);

/// The value that a share of all values does not exceed, by the nearest rank; 0 without values.
double percentile(std::vector<double> values, double share);

}  // namespace muster
