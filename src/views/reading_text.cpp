// A column is narrow, so a reading is brought to the digits that say something, and what is not
// known to "-".
// All views use these functions, so a reading looks the same everywhere. Rounding comes before
// the choice of a unit, or 999.6 would be printed as 1000 of the smaller one. CPUs and GPUs have
// different readings for the same question; the cases for it stand here alone.
#include "views/reading_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace muster {
namespace {

constexpr double kGiga = 1e9;
constexpr double kDecimalsBelow = 10;  // so small a number says too little without one

}  // namespace

std::string percent_text(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.0f}", std::abs(*ratio) * 100) : "-";
}

std::string whole_text(std::optional<double> value) {
  return value ? std::to_string(std::lround(*value)) : "-";
}

std::string pair_text(const std::string& first, const std::string& second) {
  return first == "-" && second == "-" ? "-" : first + "/" + second;
}

std::string short_number(std::optional<double> value) {
  if (!value) return "-";
  constexpr std::array kUnits{"", "k", "M", "G", "T", "P", "E"};
  auto rest = *value;
  std::size_t unit = 0;
  // 999.5 would be written as 1000.
  while (rest >= 999.5 && unit + 1 < kUnits.size()) {
    rest /= 1000;
    ++unit;
  }
  const bool has_decimal = unit > 0 && rest < kDecimalsBelow - 0.05;
  return fmt::format("{:.{}f}{}", rest, has_decimal ? 1 : 0, kUnits[unit]);
}

std::string gigabytes_pair(std::optional<double> used, std::optional<double> size) {
  const bool has_decimal = size.value_or(used.value_or(0)) < kDecimalsBelow * kGiga;
  const auto one = [&](std::optional<double> bytes) {
    return bytes ? fmt::format("{:.{}f}", *bytes / kGiga, has_decimal ? 1 : 0) : "-";
  };
  return pair_text(one(used), one(size));
}

// The maker is left out, as it is the same in every row and the model is what tells rows apart.
std::string_view short_model(std::string_view model) {
  for (const std::string_view maker : {"NVIDIA ", "AMD Instinct ", "Tesla ", "AMD "}) {
    if (model.starts_with(maker)) model.remove_prefix(maker.size());
  }
  return model;
}

std::optional<double> MemoryUse::share() const {
  if (!used || !size || *size <= 0) return std::nullopt;
  return *used / *size;
}

MemoryUse memory_use(const DeviceStatus& status) {
  const auto& readings = status.readings;
  if (is_gpu(status)) {
    return {readings.get(Reading::GpuMemoryUsed), readings.get(Reading::GpuMemorySize)};
  }
  const auto size = readings.get(Reading::CpuMemorySize);
  const auto available = readings.get(Reading::CpuMemoryAvailable);
  return {size && available ? std::optional(*size - std::min(*size, *available)) : std::nullopt,
          size};
}

std::optional<double> busy_share(const DeviceStatus& status) {
  return status.readings.get(is_gpu(status) ? Reading::GpuUtilization : Reading::CpuUtilization);
}

HealthState worst_state(const DeviceStatus& status) {
  auto worst = HealthState::Well;
  for (const auto& finding : status.health) worst = std::max(worst, finding.state);
  return worst;
}

HealthState watch_state(const DeviceStatus& status, std::string_view watch) {
  const auto found =
      std::find_if(status.health.begin(), status.health.end(),
                   [&](const HealthFinding& finding) { return finding.watch == watch; });
  return found == status.health.end() ? HealthState::Well : found->state;
}

bool is_slice(const DeviceStatus& status) { return status.identity.parent.has_value(); }

bool is_gpu(const DeviceStatus& status) { return status.identity.device.kind != DeviceKind::Cpu; }

}  // namespace muster
