#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/telemetry.h"

namespace muster {

/// A snapshot as one line of JSON with its line end, in the form of docs/formats/telemetry.md.
/// Bytes that are no UTF-8 are replaced; of the collector the calls and tick times are left out.
///
/// only: the readings that are written; empty: all that are there.
std::string recording_line(const TelemetrySnapshot& snapshot, const std::vector<Reading>& only);

/// Members of every such line, by which it is known, in the order in which they begin it.
std::vector<std::string> recording_keys();

/// The snapshot of such a line; its monotonic time is that of the wall clock.
///
/// Errors: Corrupt (no JSON object; a field of another type or range; a reading, kind or link that
/// is not known), with the field at fault. Keys that are not known are passed over.
Result<TelemetrySnapshot> read_recording_line(std::string_view line);

}  // namespace muster
