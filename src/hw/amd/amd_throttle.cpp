// Residencies of the firmware are steps of an unknown length; only the ratio of two rises means
// something, which times the firmware's own clock gives seconds. The clock of this process is not
// used, since the table may be older than the read.

#include "hw/amd/amd_throttle.h"

#include <algorithm>
#include <utility>

#include "spec/reading.h"

namespace muster {
namespace {

double rise(std::uint64_t before, std::uint64_t now) {
  return now > before ? static_cast<double>(now - before) : 0.0;
}

}  // namespace

std::optional<std::uint32_t> AmdThrottle::add(const AmdMetrics& metrics) {
  if (!metrics.residencies) return std::nullopt;
  const auto& now = *metrics.residencies;
  const auto before = std::exchange(last_, now);
  const auto time_before = std::exchange(last_firmware_seconds_, metrics.firmware_seconds);
  if (!before) return std::nullopt;
  const auto power = rise(before->power, now.power);
  const auto thermal = rise(before->thermal, now.thermal);
  const auto hot = rise(before->hot_signal, now.hot_signal);
  if (before->steps && now.steps && time_before && metrics.firmware_seconds) {
    const auto steps = rise(*before->steps, *now.steps);
    const auto passed = *metrics.firmware_seconds - *time_before;
    if (steps > 0 && passed > 0) {
      // A reason of several parts adds them up: together no more than the time that passed.
      auto held = seconds_.value_or(Seconds{});
      held.power += std::min(power / steps, 1.0) * passed;
      held.thermal += std::min(thermal / steps, 1.0) * passed;
      held.hot_signal += std::min(hot / steps, 1.0) * passed;
      seconds_ = held;
    }
  }
  std::uint32_t events = 0;
  if (power > 0) events |= static_cast<std::uint32_t>(ClockEvent::SwPowerCap);
  if (thermal > 0) events |= static_cast<std::uint32_t>(ClockEvent::SwThermal);
  if (hot > 0) events |= static_cast<std::uint32_t>(ClockEvent::HwThermal);
  return events;
}

}  // namespace muster
