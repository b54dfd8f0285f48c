#include "terminal/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

constexpr auto kWindow =
    std::chrono::seconds(5);  // long enough to be calm, short enough to notice a stall
constexpr std::size_t kSampleCountMax = 64;
constexpr std::size_t kBarWidthMin = 10;
constexpr std::size_t kBarWidthMax = 30;
constexpr double kRemainingSecondsMax = 100.0 * 3600;  // beyond it the guess says nothing

std::string rate_text(double rate, const std::string& unit) {
  return with_thousands(static_cast<std::uint64_t>(std::llround(std::max(rate, 0.0)))) + " " +
         unit + "/s";
}

std::string percent_text(double fraction) {
  return fmt::format("{} %", static_cast<int>(std::clamp(fraction, 0.0, 1.0) * 100));
}

// Counts, speeds and the time left, most wanted first.
std::vector<std::string> parts_of(const ProgressView& view) {
  std::vector<std::string> parts;
  const auto& counts = view.reading.counts;
  if (!counts.empty()) {
    parts.push_back(with_thousands(counts.front().count) + " " + counts.front().unit);
  }
  for (std::size_t i = 0; i < view.rates_per_second.size(); ++i) {
    parts.push_back(rate_text(view.rates_per_second[i], counts[i].unit));
  }
  if (view.remaining_seconds) parts.push_back("ETA " + format_duration(*view.remaining_seconds));
  return parts;
}

std::string bar_text(double fraction, std::size_t width, bool has_color) {
  const auto filled =
      static_cast<std::size_t>(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(width));
  std::string full(filled, '=');
  if (filled > 0 && filled < width) full.back() = '>';
  if (has_color) full = "\033[32m" + full + "\033[0m";
  return "[" + full + std::string(width - filled, ' ') + "]";
}

}  // namespace

ProgressView ProgressMeter::add(TimePoint now, ProgressReading reading) {
  // The newest sample that is at least a window old stays, as the base of the speeds.
  while (samples_.size() >= 2 &&
         (now - samples_[1].time >= kWindow || samples_.size() >= kSampleCountMax)) {
    samples_.pop_front();
  }
  ProgressView view{.reading = reading, .rates_per_second = {}, .remaining_seconds = {}};
  if (!samples_.empty() && now > samples_.front().time) {
    const auto& base = samples_.front();
    const double elapsed = seconds(now - base.time);
    const auto unit_count = std::min(reading.counts.size(), base.reading.counts.size());
    for (std::size_t i = 0; i < unit_count; ++i) {
      const auto gained = static_cast<double>(reading.counts[i].count) -
                          static_cast<double>(base.reading.counts[i].count);
      view.rates_per_second.push_back(gained / elapsed);
    }
    if (reading.fraction && base.reading.fraction && *reading.fraction > *base.reading.fraction) {
      const double speed = (*reading.fraction - *base.reading.fraction) / elapsed;
      const double remaining = (1.0 - *reading.fraction) / speed;
      if (remaining >= 0 && remaining < kRemainingSecondsMax) view.remaining_seconds = remaining;
    }
  }
  samples_.push_back({now, std::move(reading)});
  return view;
}

std::string render_progress(const ProgressView& view, std::size_t width, bool has_color) {
  auto parts = parts_of(view);
  parts.insert(parts.end(), view.reading.devices.begin(), view.reading.devices.end());
  const std::string percent = view.reading.fraction
                                  ? fmt::format("{:>5} ", percent_text(*view.reading.fraction))
                                  : std::string();
  const std::size_t bar_least = view.reading.fraction ? kBarWidthMin + 2 : 0;

  std::string tail;
  for (const auto& part : parts) {
    const auto longer =
        tail + (tail.empty() && !view.reading.fraction ? "" : "  ") + printable(part);
    if (percent.size() + bar_least + display_width(longer) > width) break;
    tail = longer;
  }
  if (!view.reading.fraction) return tail;
  if (percent.size() + bar_least > width) return fit_width(percent, width);
  const auto room = width - percent.size() - 2 - display_width(tail);
  return percent + bar_text(*view.reading.fraction, std::min(room, kBarWidthMax), has_color) + tail;
}

std::string describe_progress(const ProgressView& view) {
  auto parts = parts_of(view);
  if (view.reading.fraction) parts.insert(parts.begin(), percent_text(*view.reading.fraction));
  for (const auto& device : view.reading.devices) {
    // A device that only works needs no word in a log.
    if (device.find(' ') != std::string::npos) parts.push_back(device);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string format_duration(double seconds) {
  const auto total = static_cast<std::uint64_t>(std::ceil(std::max(seconds, 0.0)));
  const auto hours = total / 3600;
  const auto minutes = total / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60);
  return fmt::format("{}:{:02}", minutes, total % 60);
}

}  // namespace muster
