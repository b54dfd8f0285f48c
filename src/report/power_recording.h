#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/report_result.h"
#include "report/thinning.h"

namespace muster {

/// The power of one device over time.
struct PowerLine {
  std::string device = {};  // "cuda:0"
  std::string model = {};
  bool is_of_counter = false;  // worked out of the energy counter, not read
  /// x: seconds since 1970; y: watts, no number where the device told none meanwhile.
  std::vector<PlotPoint> points = {};
};

/// What a recording says of power.
struct PowerRecording {
  std::string name = {};  // of its file; text
  std::string point =
      {};            // the id of a point of `bench run` that its file is named after, or the name
  double begin = 0;  // seconds since 1970, of its first and last line
  double end = 0;
  std::vector<PowerLine> lines = {};  // of the devices that told any
};

/// Reads a recording of `muster monitor --out` or of a point (docs/formats/telemetry.md): of a GPU
/// its power, instant or else the mean of a second; of CPUs the difference of their energy counter
/// by the time between two looks. A last line without its end is passed over.
///
/// point: as in PowerRecording. Errors: Corrupt, with the line at fault; InvalidArgument (no line).
/// Threads: pure.
Result<PowerRecording> read_power_recording(std::string_view text, std::string_view name,
                                            std::string_view point);

/// Whether a recording is one of the result: it has the id of its point, or, named after no point
/// of `all`, was made while one of its trials ran. Threads: pure.
bool is_recording_of(const PowerRecording& recording, const ReportResult& result,
                     std::span<const ReportResult> all);

}  // namespace muster
