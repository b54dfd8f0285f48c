// A table that has no end cannot be laid out as a whole: columns keep their widths from moment to
// moment, and titles come again before they are out of sight. Readings come in the order in which
// they are worth watching, and those that have no room are left out rather than cut: a number that
// lacks digits is a wrong number.
#include "cli/monitor_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "terminal/text_width.h"
#include "terminal/text_wrap.h"
#include "views/reading_text.h"

namespace muster {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kClockWidth = 8;
constexpr std::size_t kValueWidth = 7;  // "19.1 GB"

// Most worth watching first.
constexpr std::array kUsual{
    Reading::GpuUtilization,     Reading::CpuUtilization,  Reading::GpuMemoryUsed,
    Reading::CpuMemoryAvailable, Reading::GpuPowerInstant, Reading::GpuTemperatureCore,
    Reading::GpuClockSm,         Reading::CpuFrequency,    Reading::CpuEnergyPackage,
    Reading::GpuEnergy,          Reading::GpuMemorySize,   Reading::CpuMemorySize,
};

std::size_t device_width(const TelemetrySnapshot& snapshot) {
  std::size_t width = std::string_view("device").size();
  for (const auto& status : snapshot.devices) {
    width = std::max(width, display_width(printable(status.name)));
  }
  return width;
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, display_width(text)), ' ') + text;
}

}  // namespace

std::string reading_value_text(Reading reading, double value) {
  const auto unit = reading_info(reading).unit;
  if (unit == "B" && value >= 0) return human_bytes(static_cast<std::uint64_t>(value));
  if (unit == "Hz") return short_number(value);
  constexpr double kManyDigits = 10'000;
  if (value >= kManyDigits) return with_thousands(static_cast<std::uint64_t>(std::llround(value)));
  const bool is_whole = value == std::floor(value);
  return is_whole ? fmt::format("{:.0f}", value)
                  : fmt::format("{:.{}f}", value, value < 10 ? 2 : 1);
}

MonitorTable::MonitorTable(const std::vector<Reading>& only, const TerminalInfo& terminal)
    : wanted_(only.empty() ? std::vector<Reading>(kUsual.begin(), kUsual.end()) : only),
      terminal_(terminal) {}

std::vector<MonitorTable::Column> MonitorTable::columns_for(
    const TelemetrySnapshot& snapshot) const {
  std::vector<Column> columns;
  auto used = kClockWidth + kGap + device_width(snapshot);
  for (const auto reading : wanted_) {
    const bool is_there =
        std::any_of(snapshot.devices.begin(), snapshot.devices.end(),
                    [reading](const auto& status) { return status.readings.has(reading); });
    const auto width = std::max(reading_info(reading).name.size(), kValueWidth);
    if (!is_there || used + kGap + width > terminal_.width) continue;
    columns.push_back({reading, width});
    used += kGap + width;
  }
  return columns;
}

std::string MonitorTable::lines(const TelemetrySnapshot& snapshot, const std::string& clock) {
  const auto columns = columns_for(snapshot);
  const auto name_width = device_width(snapshot);
  std::vector<Reading> readings;
  for (const auto& column : columns) readings.push_back(column.reading);
  std::string out;
  const auto screen = std::max<std::size_t>(terminal_.height, snapshot.devices.size() + 2);
  if (readings != shown_ || lines_below_titles_ == 0 ||
      lines_below_titles_ + snapshot.devices.size() + 1 >= screen) {
    auto titles = padded("time", kClockWidth) + std::string(kGap, ' ');
    titles += padded("device", name_width);
    for (const auto& column : columns) {
      titles += std::string(kGap, ' ') +
                right(std::string(reading_info(column.reading).name), column.width);
    }
    out += styled(titles, kHeading, terminal_.has_color) + "\n";
    lines_below_titles_ = 0;
    shown_ = std::move(readings);
  }
  for (const auto& status : snapshot.devices) {
    auto line = padded(clock, kClockWidth) + std::string(kGap, ' ');
    line += padded(printable(status.name), name_width);
    if (!status.is_up) {
      const auto room = terminal_.width - std::min(terminal_.width, display_width(line) + kGap);
      line += std::string(kGap, ' ') +
              styled(fit_whole_words("down: " + printable(status.down_reason), room), kBad,
                     terminal_.has_color);
    }
    for (const auto& column : columns) {
      if (!status.is_up) break;
      const auto value = status.readings.get(column.reading);
      line += std::string(kGap, ' ') +
              right(value ? reading_value_text(column.reading, *value) : "-", column.width);
    }
    out += line + "\n";
    ++lines_below_titles_;
  }
  return out;
}

std::string monitor_line(const DeviceStatus& status, const std::vector<Reading>& only) {
  auto line = printable(status.name);
  if (!status.is_up) return line + "  down: " + printable(status.down_reason) + "\n";
  for (const auto& info : reading_table()) {
    const bool is_shown =
        only.empty() ? info.tier != Tier::Slow : std::ranges::count(only, info.reading) > 0;
    const auto value = status.readings.get(info.reading);
    if (is_shown && value) line += fmt::format("  {}={}", info.name, *value);
  }
  return line + "\n";
}

}  // namespace muster
