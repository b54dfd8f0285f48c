// A line for each device and moment. The columns are fixed by the list of readings and not by what
// a device can tell: a reading that is missing leaves its cell empty, so that files of different
// machines can be put together. Readings are written with as many digits as give them back exactly.
// Source: RFC 4180, section 2, for the quotes.

#include "cli/monitor_csv.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {
namespace {

template <typename Visit>
void each_reading(const std::vector<Reading>& only, const Visit& visit) {
  for (const auto& info : reading_table()) {
    if (only.empty() || std::ranges::count(only, info.reading) > 0) visit(info);
  }
}

// In quotes where it would end a field or a line.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::string csv_header(const std::vector<Reading>& only) {
  std::string line = "time,device";
  each_reading(only, [&](const ReadingInfo& info) { line += fmt::format(",{}", info.name); });
  return line + "\n";
}

std::string csv_lines(const TelemetrySnapshot& snapshot, const std::vector<Reading>& only) {
  std::string lines;
  for (const auto& device : snapshot.devices) {
    lines += fmt::format("{:.3f},{}", snapshot.unix_seconds, field(device.name));
    each_reading(only, [&](const ReadingInfo& info) {
      const auto value = device.readings.get(info.reading);
      lines += value ? fmt::format(",{}", *value) : ",";
    });
    lines += '\n';
  }
  return lines;
}

}  // namespace muster
