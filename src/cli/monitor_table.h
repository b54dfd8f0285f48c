#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "spec/telemetry.h"
#include "terminal/terminal_info.h"

namespace muster {

/// What `muster monitor` prints by itself on a terminal: a line for each device and interval, below
/// titles that are the names of the readings as in JSON, CSV and --metrics. The readings that are
/// asked for, else those most worth watching that any device has, as many as fit the width.
///
/// Threads: not thread-safe.
class MonitorTable {
 public:
  /// only: the readings that are shown; empty: a choice of ours.
  MonitorTable(const std::vector<Reading>& only, const TerminalInfo& terminal);

  /// The lines of a moment. Titles stand above the first one, and again once a screen has scrolled
  /// by or the columns have changed.
  ///
  /// clock: "14:02:31".
  std::string lines(const TelemetrySnapshot& snapshot, const std::string& clock);

 private:
  struct Column {
    Reading reading;
    std::size_t width = 0;
  };
  std::vector<Column> columns_for(const TelemetrySnapshot& snapshot) const;

  const std::vector<Reading> wanted_;
  const TerminalInfo terminal_;
  std::vector<Reading> shown_;  // under the titles that were printed last
  std::size_t lines_below_titles_ = 0;
};

/// A reading for people: "0.29", "19.1 GB", "3.7G" of hertz, "627". Never with an exponent.
std::string reading_value_text(Reading reading, double value);

/// "cuda:0  utilization_ratio=0.5  …" with its line end: what a program gets, nothing cut, numbers
/// as in CSV. Readings that are slow only where `only` names them.
std::string monitor_line(const DeviceStatus& status, const std::vector<Reading>& only);

}  // namespace muster
