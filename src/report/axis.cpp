// Ticks are round numbers, so that a value between two of them can be read off. A range that no
// axis can show (infinite, without width) becomes the one from 0 to 1: a broken result is drawn
// badly, and the program goes on.
#include "report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace muster {
namespace {

constexpr double kLogRatio = 20;      // beyond which an axis is one of logarithms
constexpr double kLinearRoom = 1.05;  // above the highest value
constexpr double kLogRoom = 1.15;     // below the lowest and above the highest
constexpr double kRounding = 1e-9;    // of a step: 3 x 0.1 is not 0.3
constexpr double kTen = 10;
constexpr int kTicksLimit = 100;  // whatever a caller asks for
constexpr double kPlainMost = 1e6;

// The smallest of 1, 2, 5, 10 times a power of ten that is at least `raw`.
double round_step(double raw) {
  const double power = std::pow(kTen, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1 - kRounding)) return factor * power;
  }
  return kTen * power;
}

// With as many digits as the step has.
std::string linear_label(double value, double step) {
  if (std::abs(value) >= kPlainMost) return fmt::format("{:.3g}", value);
  const int digits = std::clamp(static_cast<int>(-std::floor(std::log10(step) + kRounding)), 0, 9);
  return fmt::format("{:.{}f}", value, digits);
}

std::vector<AxisTick> linear_ticks(const PlotAxis& axis, std::size_t count_most) {
  std::vector<AxisTick> ticks;
  const double step = round_step((axis.high - axis.low) / static_cast<double>(count_most));
  const double first = std::ceil(axis.low / step - kRounding) + 0.0;  // not -0
  for (int i = 0; i < kTicksLimit; ++i) {
    const double value = (first + i) * step;
    if (value > axis.high + kRounding * step) break;
    ticks.push_back({.value = value, .label = linear_label(value, step)});
  }
  return ticks;
}

std::vector<AxisTick> log_ticks(const PlotAxis& axis, std::size_t count_most) {
  std::vector<AxisTick> ticks;
  const double low = std::floor(std::log10(axis.low));
  const double decades = std::log10(axis.high / axis.low);
  const bool has_between = decades <= 2;
  const double stride =
      std::max(1.0, std::ceil(std::ceil(decades) / static_cast<double>(count_most)));
  for (int i = 0; i < kTicksLimit; ++i) {
    const double power = std::pow(kTen, low + i * stride);
    if (power > axis.high * (1 + kRounding)) break;
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * power;
      const bool is_shown = factor == 1 || has_between;
      const bool is_within =
          value >= axis.low * (1 - kRounding) && value <= axis.high * (1 + kRounding);
      if (is_shown && is_within)
        ticks.push_back({.value = value, .label = fmt::format("{:.6g}", value)});
    }
  }
  return ticks;
}

bool can_be_shown(const PlotAxis& axis) {
  const bool is_range =
      std::isfinite(axis.low) && std::isfinite(axis.high) && axis.high - axis.low > 0;
  return is_range && (axis.scale == AxisScale::Linear || axis.low > 0);
}

}  // namespace

double PlotAxis::place(double value) const {
  if (!can_be_shown(*this)) return 0;
  if (scale == AxisScale::Linear) return std::clamp((value - low) / (high - low), 0.0, 1.0);
  if (value <= low) return 0;
  return std::clamp(std::log(value / low) / std::log(high / low), 0.0, 1.0);
}

PlotAxis axis_for(double least, double most) {
  if (!std::isfinite(most) || most <= 0) return {};
  if (std::isfinite(least) && least > 0 && most / least > kLogRatio) {
    return {.scale = AxisScale::Log, .low = least / kLogRoom, .high = most * kLogRoom};
  }
  return {.scale = AxisScale::Linear, .low = 0, .high = most * kLinearRoom};
}

std::vector<AxisTick> ticks_of(const PlotAxis& axis, std::size_t count_most) {
  if (!can_be_shown(axis) || count_most == 0) return {};
  return axis.scale == AxisScale::Log ? log_ticks(axis, count_most)
                                      : linear_ticks(axis, count_most);
}

}  // namespace muster
