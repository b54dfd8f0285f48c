#pragma once

#include <string>
#include <vector>

#include "spec/telemetry.h"

namespace muster {

/// The first line of a recording in CSV: "time,device" and the names of the readings.
///
/// only: the readings that are written; empty: all of the table.
/// Source: RFC 4180, but that lines end in "\n"; docs/formats/telemetry.md.
std::string csv_header(const std::vector<Reading>& only);

/// A line for each device of a snapshot, in its order; a reading that is not known is empty. Times
/// are seconds since 1970 by the wall clock, the rest as in `reading_info`.
std::string csv_lines(const TelemetrySnapshot& snapshot, const std::vector<Reading>& only);

}  // namespace muster
