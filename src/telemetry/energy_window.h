#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/telemetry.h"
#include "telemetry/collector.h"

namespace muster {

/// What a device used between two moments.
struct WindowEnergy {
  /// nullopt: not known, and `missing_reason` says why; never a silent 0.
  std::optional<double> joules;
  std::optional<double> mean_watts;
  /// By the counter: what it told between its two edges, and how long that was.
  std::optional<double> counted_joules;
  double counted_seconds = 0;
  std::string method;  // "counter", "integrated"; empty without joules
  /// The true value is at most so far away by the times of the readings alone. Where an edge lies
  /// further away from the window than a refresh of the counter, as on a busy machine, what the
  /// device used between them counts as error, too, at the highest power seen in the window: more
  /// is possible where it worked harder before or after. The sensor's own error, about 5 % of a
  /// board's reading, comes on top and is the same for every run of a board.
  /// Source: Yang et al. 2024, "Part-time Power Measurements: nvidia-smi's Lack of Attention".
  std::optional<double> error_joules;
  std::string missing_reason;
  std::string counter_missing_reason;  // of "integrated": why not by the counter
  bool was_reset = false;              // the counter went back: there is no total
  bool is_exclusive = true;            // no process of somebody else was seen on the device
  bool was_throttled = false;          // a power or heat limit held the clock down
};

/// Puts together the energy of one device from the edges of its counter at both ends and the
/// samples between.
///
/// By the counter: between two edges of it the energy is exact, P = (E1 - E0) / (t1 - t0). The
/// moments that were asked for lie up to a refresh away from the edges; what is told is
/// P * (end - begin). A counter that goes back makes the window invalid. Without edges the power
/// readings are integrated by trapezoids, and the method says so; there are no joules where none
/// came for two seconds, five of their usual gaps and 5 % of the window, as of a device that is
/// lost.
///
/// Not thread-safe; owned by whoever subscribed. Source of the method: ±0.5 % over a second with
/// looks a millisecond apart: the error is the looks' gap over the window.
class EnergyWindow {
 public:
  /// begin: the window's begin, and the edge found there.
  EnergyWindow(TimePoint begin, EnergyEdge edge) : begin_(begin), first_(std::move(edge)) {}

  void add(const DeviceSample& sample);
  /// Somebody else's process was on the device.
  void set_shared() { is_exclusive_ = false; }

  /// end: the window's end, and the edge found after it.
  WindowEnergy close(TimePoint end, const EnergyEdge& edge) const;

 private:
  struct Power {
    TimePoint at;
    double watts = 0;
  };

  WindowEnergy by_counter(TimePoint end, const EnergyEdge& edge) const;
  WindowEnergy by_power(TimePoint end, const std::string& why) const;

  TimePoint begin_;
  EnergyEdge first_;
  std::vector<Power> powers_;
  std::optional<double> counter_;  // the last one seen
  bool was_reset_ = false;
  bool is_exclusive_ = true;
  bool was_throttled_ = false;
};

}  // namespace muster
