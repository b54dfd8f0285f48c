// Only what was read becomes a point: a device that told nothing for a while has a gap there, and a
// counter that went back or stood still tells no power.
#include "report/power_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "spec/telemetry.h"
#include "telemetry/recording.h"

namespace muster {
namespace {

constexpr double kGapSeconds = 5;  // a recording has a line a second
constexpr double kNoPower = std::numeric_limits<double>::quiet_NaN();

// A device while its lines are read.
struct WatchedDevice {
  PowerLine line = {};
  std::optional<double> last_at = {};      // of its last look
  std::optional<double> last_joules = {};  // of a CPU's counter then
};

void add_point(WatchedDevice& device, double at, double watts) {
  auto& points = device.line.points;
  if (!points.empty() && at - points.back().x > kGapSeconds) {
    points.push_back({.x = at, .y = kNoPower});
  }
  points.push_back({.x = at, .y = watts});
}

void add_gap(WatchedDevice& device, double at) {
  if (!device.line.points.empty()) device.line.points.push_back({.x = at, .y = kNoPower});
}

void add_gpu(WatchedDevice& device, const Readings& readings, double at) {
  auto watts = readings.get(Reading::GpuPowerInstant);
  if (!watts) watts = readings.get(Reading::GpuPowerAverage);
  if (watts) {
    add_point(device, at, *watts);
  } else {
    add_gap(device, at);
  }
}

void add_cpu(WatchedDevice& device, const Readings& readings, double at) {
  const auto joules = readings.get(Reading::CpuEnergyPackage);
  const auto before = device.last_joules;
  const auto before_at = device.last_at;
  device.last_joules = joules;
  if (!joules) {
    add_gap(device, at);
    return;
  }
  if (!before || !before_at) return;
  if (*joules < *before || at - *before_at > kGapSeconds) {
    add_gap(device, at);
    return;
  }
  add_point(device, at, (*joules - *before) / (at - *before_at));
}

WatchedDevice& device_of(std::vector<WatchedDevice>& devices, const DeviceStatus& status) {
  const auto found = std::ranges::find_if(
      devices, [&](const WatchedDevice& one) { return one.line.device == status.name; });
  if (found != devices.end()) return *found;
  devices.push_back({.line = {.device = status.name,
                              .model = status.identity.device.model,
                              .is_of_counter = status.identity.device.kind == DeviceKind::Cpu}});
  return devices.back();
}

// A line may be written before the device was looked at again: the same look counts once.
void add_snapshot(std::vector<WatchedDevice>& devices, const TelemetrySnapshot& snapshot) {
  for (const auto& status : snapshot.devices) {
    auto& device = device_of(devices, status);
    const double at = status.last_success_unix_seconds.value_or(snapshot.unix_seconds);
    if (device.last_at && at <= *device.last_at) continue;
    if (device.line.is_of_counter) {
      add_cpu(device, status.readings, at);
    } else {
      add_gpu(device, status.readings, at);
    }
    device.last_at = at;
  }
}

bool has_power(const PowerLine& line) {
  return std::ranges::any_of(line.points, [](const PlotPoint& point) { return point.y >= 0; });
}

}  // namespace

Result<PowerRecording> read_power_recording(std::string_view text, std::string_view name,
                                            std::string_view point) {
  PowerRecording recording{.name = std::string(name), .point = std::string(point)};
  std::vector<WatchedDevice> devices;
  std::size_t number = 0;
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    ++number;
    const auto snapshot = read_recording_line(text.substr(0, end));
    if (!snapshot) {
      return corrupt_error(fmt::format("{}:{}: this is no recording of muster: {}", name, number,
                                       snapshot.error().message));
    }
    if (number == 1) recording.begin = snapshot->unix_seconds;
    recording.end = snapshot->unix_seconds;
    add_snapshot(devices, *snapshot);
    text.remove_prefix(end + 1);
  }
  if (number == 0) return invalid_error(fmt::format("{}: the recording has no whole line", name));
  for (auto& device : devices) {
    if (has_power(device.line)) recording.lines.push_back(std::move(device.line));
  }
  return recording;
}

bool is_recording_of(const PowerRecording& recording, const ReportResult& result,
                     std::span<const ReportResult> all) {
  const auto is_named = [&recording](const ReportResult& one) {
    return one.record && one.record->point == recording.point;
  };
  if (std::ranges::any_of(all, is_named)) return is_named(result);
  for (const auto& load : result.loads) {
    for (const auto& trial : load.trials) {
      if (!trial.started_at) continue;
      const double end = *trial.started_at + trial.warm_up_seconds + trial.counted_seconds;
      if (*trial.started_at <= recording.end && end >= recording.begin) return true;
    }
  }
  return false;
}

}  // namespace muster
