#pragma once

#include <string>
#include <vector>

#include "terminal/canvas.h"
#include "views/top_data.h"

namespace muster {

struct TopNote {
  std::string text;
  Style style;
};

/// What is wrong, the worst first, then what is slower than it could be: a line each. That a device
/// is down stands in its own row.
std::vector<TopNote> top_notes(const TopData& data);

/// The totals of the machine: "8 GPUs", "busy 71 %", …, the most telling first; of its CPUs where
/// it has no GPU.
std::vector<std::string> machine_totals(const TelemetrySnapshot& snapshot,
                                        const std::vector<Trend>& trends);

/// What holds for the whole machine; what watching it costs, where that is much, and what it
/// missed.
std::vector<std::string> machine_facts(const TopData& data);

/// What of a device is worth a line when it is chosen: UUID, links, and what has gone wrong.
std::string device_details(const DeviceStatus& status);

}  // namespace muster
