// Columns are rows of a table: to show something new of a device, a row is added, and its rank says
// what must leave before it does. A cell knows nothing of its neighbours.
#include "views/top_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "terminal/bars.h"
#include "views/reading_text.h"

namespace muster {
namespace {

constexpr double kMega = 1e6;

Style style_of(HealthState state) {
  if (state == HealthState::Well) return {};
  return state == HealthState::Warning ? kWarning : kBad;
}

// An absent reading is never coloured: a warning about what is not known would mislead.
TopCell quiet_if_absent(std::string text, Style style = {}) {
  if (text == "-") style = {.role = Role::Quiet};
  return {std::move(text), style};
}

TopCell device_cell(const TopRow& row, std::size_t) {
  return {row.status.name, {.role = Role::Heading, .is_bold = true}};
}

// What does nothing is quiet, so that what works stands out.
Style busy_style(std::optional<double> share) {
  constexpr double kIdleBelow = 0.02;
  return share.value_or(0) < kIdleBelow ? kQuiet : Style{.role = Role::Good};
}

TopCell busy_cell(const TopRow& row, std::size_t) {
  const auto share = busy_share(row.status);
  return quiet_if_absent(percent_text(share), busy_style(share));
}

TopCell busy_bar_cell(const TopRow& row, std::size_t width) {
  const auto share = busy_share(row.status);
  return {share ? bar_text(*share, width, row.characters) : "", busy_style(share)};
}

TopCell activity_cell(const TopRow& row, std::size_t) {
  const auto& readings = row.status.readings;
  return quiet_if_absent(pair_text(percent_text(readings.get(Reading::GpuSmActive)),
                                   percent_text(readings.get(Reading::GpuTensorActiveAny))));
}

TopCell memory_cell(const TopRow& row, std::size_t) {
  const auto use = memory_use(row.status);
  return quiet_if_absent(gigabytes_pair(use.used, use.size),
                         style_of(watch_state(row.status, "memory")));
}

TopCell memory_bar_cell(const TopRow& row, std::size_t width) {
  const auto share = memory_use(row.status).share();
  const bool is_high = watch_state(row.status, "memory") != HealthState::Well;
  return {share ? bar_text(*share, width, row.characters) : "",
          {.role = is_high ? Role::Warning : Role::Accent}};
}

// Watts and their limit side by side, because neither says much alone.
TopCell power_cell(const TopRow& row, std::size_t) {
  const auto limit = row.status.readings.get(Reading::GpuPowerLimitEnforced);
  auto text = whole_text(row.trend.watts);
  if (limit) text = pair_text(text, whole_text(limit));
  return quiet_if_absent(std::move(text), style_of(watch_state(row.status, "power_brake")));
}

TopCell temperature_cell(const TopRow& row, std::size_t) {
  const auto& readings = row.status.readings;
  auto text = whole_text(chip_temperature(readings));
  if (const auto left = readings.get(Reading::GpuTemperatureHeadroom)) {
    text = pair_text(text, whole_text(left));
  }
  return quiet_if_absent(std::move(text), style_of(watch_state(row.status, "thermal")));
}

std::optional<double> ratio(const Readings& readings, Reading part, Reading whole) {
  const auto above = readings.get(part);
  const auto below = readings.get(whole);
  if (!above || !below || *below <= 0) return std::nullopt;
  return *above / *below;
}

TopCell clock_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(
      percent_text(ratio(row.status.readings, Reading::GpuClockSm, Reading::GpuClockMaxSm)));
}

// Reasons of concern first: "PT", "i".
TopCell events_cell(const TopRow& row, std::size_t width) {
  const auto mask = row.status.readings.get(Reading::GpuClockEvents);
  if (!mask) return quiet_if_absent(is_gpu(row.status) ? "-" : "");
  const auto bits = static_cast<std::uint64_t>(*mask);
  std::string serious;
  std::string harmless;
  for (const auto& info : clock_events()) {
    if ((bits & static_cast<std::uint64_t>(info.event)) == 0) continue;
    const bool is_serious = info.letter >= 'A' && info.letter <= 'Z';
    auto& letters = is_serious ? serious : harmless;
    if (letters.find(info.letter) == std::string::npos) letters += info.letter;
  }
  auto text = serious + harmless;
  text.resize(std::min(text.size(), width));
  return {text, serious.empty() ? Style{.role = Role::Quiet}
                                : Style{.role = Role::Warning, .is_bold = true}};
}

TopCell link_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(short_number(row.trend.nvlink_bytes_per_second),
                         style_of(watch_state(row.status, "nvlink")));
}

// "ok", "!2": so many warnings; "X1": so many things that make it unfit.
TopCell health_cell(const TopRow& row, std::size_t) {
  const auto worst = worst_state(row.status);
  if (row.status.health.empty()) return quiet_if_absent("-");
  if (worst == HealthState::Well) return {"ok", {.role = Role::Good}};
  const auto count = std::count_if(row.status.health.begin(), row.status.health.end(),
                                   [&](const HealthFinding& one) { return one.state == worst; });
  return {fmt::format("{}{}", worst == HealthState::Unfit ? 'X' : '!', count), style_of(worst)};
}

// All of it in `width` marks, each the mean of its seconds.
std::vector<std::optional<double>> squeeze(std::span<const std::optional<double>> busy,
                                           std::size_t width) {
  std::vector<std::optional<double>> marks;
  for (std::size_t i = 0; i < width; ++i) {
    double sum = 0;
    std::size_t count = 0;
    const auto begin = i * busy.size() / width;
    const auto end = (i + 1) * busy.size() / width;
    for (const auto& value : busy.subspan(begin, end - begin)) {
      if (!value) continue;
      sum += *value;
      ++count;
    }
    marks.push_back(count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt);
  }
  return marks;
}

TopCell trend_cell(const TopRow& row, std::size_t width) {
  const auto minute = row.trend.busy_minute();
  const auto marks = squeeze(minute, std::min(width, minute.size()));
  return {sparkline_text(marks, row.characters), {.role = Role::Good}};
}

TopCell dram_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(percent_text(row.status.readings.get(Reading::GpuDramActive)));
}

TopCell pcie_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(short_number(row.trend.pcie_bytes_per_second));
}

TopCell memory_temperature_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(whole_text(row.status.readings.get(Reading::GpuTemperatureMemory)));
}

TopCell process_count_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(is_gpu(row.status) ? std::to_string(row.status.processes.size()) : "-");
}

std::optional<double> megahertz(const TopRow& row, Reading reading) {
  const auto hertz = row.status.readings.get(reading);
  return hertz ? std::optional(*hertz / kMega) : std::nullopt;
}

TopCell clock_sm_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(
      whole_text(megahertz(row, is_gpu(row.status) ? Reading::GpuClockSm : Reading::CpuFrequency)));
}

TopCell clock_memory_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(whole_text(megahertz(row, Reading::GpuClockMemory)));
}

TopCell occupancy_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(percent_text(row.status.readings.get(Reading::GpuSmOccupancy)));
}

TopCell watts_now_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(whole_text(row.trend.watts));
}

TopCell energy_minute_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(short_number(row.trend.joules));
}

// From the counter over its own time, not from power readings: it misses nothing between two
// looks.
TopCell energy_mean_cell(const TopRow& row, std::size_t) {
  const auto& trend = row.trend;
  const auto mean = trend.joules && trend.joules_seconds > 0
                        ? std::optional(*trend.joules / trend.joules_seconds)
                        : std::nullopt;
  return quiet_if_absent(whole_text(mean));
}

TopCell energy_total_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(short_number(row.status.readings.get(
      is_gpu(row.status) ? Reading::GpuEnergy : Reading::CpuEnergyPackage)));
}

template <Reading reading>
TopCell watts_cell(const TopRow& row, std::size_t) {
  return quiet_if_absent(whole_text(row.status.readings.get(reading)));
}

// clang-format off
constexpr std::array kDeviceColumns{
    TopColumn{"DEVICE", Align::Left, 0, 6, 6, SortKey::Device, device_cell},
    TopColumn{"NAME", Align::Left, 4, 8, 20, SortKey::Name, name_cell},
    TopColumn{"BUSY", Align::Right, 1, 4, 4, SortKey::Busy, busy_cell},
    TopColumn{"", Align::Left, 5, 6, 12, std::nullopt, busy_bar_cell},
    TopColumn{"SM/TC%", Align::Right, 6, 7, 7, std::nullopt, activity_cell, true},
    TopColumn{"DRAM%", Align::Right, 12, 5, 5, std::nullopt, dram_cell, true},
    TopColumn{"MEM GB", Align::Right, 1, 7, 7, SortKey::Memory, memory_cell},
    TopColumn{"", Align::Left, 10, 6, 12, std::nullopt, memory_bar_cell},
    TopColumn{"W/LIMIT", Align::Right, 2, 7, 7, SortKey::Power, power_cell},
    TopColumn{"C/LEFT", Align::Right, 3, 6, 6, SortKey::Temperature, temperature_cell, true},
    TopColumn{"MEM C", Align::Right, 14, 5, 5, std::nullopt, memory_temperature_cell, true},
    TopColumn{"CLK%", Align::Right, 8, 4, 4, std::nullopt, clock_cell, true},
    TopColumn{"MHZ", Align::Right, 13, 5, 5, std::nullopt, clock_sm_cell},
    TopColumn{"MEM MHZ", Align::Right, 18, 7, 7, std::nullopt, clock_memory_cell, true},
    TopColumn{"OCC%", Align::Right, 17, 4, 4, std::nullopt, occupancy_cell, true},
    TopColumn{"WHY", Align::Left, 7, 3, 3, std::nullopt, events_cell, true},
    TopColumn{"NVL/s", Align::Right, 9, 5, 5, std::nullopt, link_cell, true},
    TopColumn{"PCIE/s", Align::Right, 15, 6, 6, std::nullopt, pcie_cell, true},
    TopColumn{"PROCS", Align::Right, 16, 5, 5, std::nullopt, process_count_cell, true},
    TopColumn{"OK?", Align::Left, 1, 3, 3, std::nullopt, health_cell},
    TopColumn{"LAST MINUTE", Align::Left, 11, 12, kMinuteSeconds, std::nullopt, trend_cell},
};

constexpr std::array kEnergyColumns{
    TopColumn{"DEVICE", Align::Left, 0, 6, 6, SortKey::Device, device_cell},
    TopColumn{"NAME", Align::Left, 4, 8, 24, SortKey::Name, name_cell},
    TopColumn{"W NOW", Align::Right, 1, 5, 5, SortKey::Power, watts_now_cell},
    TopColumn{"W MEAN", Align::Right, 2, 6, 6, std::nullopt, energy_mean_cell},
    TopColumn{"J MINUTE", Align::Right, 3, 8, 8, std::nullopt, energy_minute_cell},
    TopColumn{"J TOTAL", Align::Right, 3, 7, 7, std::nullopt, energy_total_cell},
    TopColumn{"W LIMIT", Align::Right, 5, 7, 7, std::nullopt, watts_cell<Reading::GpuPowerLimitEnforced>, true},
    TopColumn{"DEFAULT", Align::Right, 6, 7, 7, std::nullopt, watts_cell<Reading::GpuPowerLimitDefault>, true},
    TopColumn{"MIN", Align::Right, 8, 4, 4, std::nullopt, watts_cell<Reading::GpuPowerLimitMin>, true},
    TopColumn{"MAX", Align::Right, 8, 4, 4, std::nullopt, watts_cell<Reading::GpuPowerLimitMax>, true},
    TopColumn{"MODULE", Align::Right, 9, 6, 6, std::nullopt, watts_cell<Reading::GpuModulePowerInstant>, true},
    TopColumn{"MEMORY", Align::Right, 9, 6, 6, std::nullopt, watts_cell<Reading::GpuMemoryPowerInstant>, true},
    TopColumn{"WHY", Align::Left, 7, 3, 3, std::nullopt, events_cell, true},
};
// clang-format on

}  // namespace

TopCell name_cell(const TopRow& row, std::size_t) {
  const auto& identity = row.status.identity;
  if (identity.mig_profile) return {*identity.mig_profile, {}};
  return {std::string(short_model(identity.device.model)), {}};
}

std::span<const TopColumn> device_columns() { return kDeviceColumns; }

std::span<const TopColumn> energy_columns() { return kEnergyColumns; }

}  // namespace muster
