// What a running job looks like: the meter turns counts into speeds, the renderer fits them into
// the terminal of this moment. Neither writes anything.
#include "terminal/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "terminal/bars.h"
#include "terminal/style.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

constexpr auto kWindow =
    std::chrono::seconds(5);  // long enough to be calm, short enough to notice a stall
constexpr std::size_t kSampleCountMax = 64;
constexpr std::size_t kBarWidthMin = 10;
constexpr std::size_t kBarWidthMax = 30;
constexpr std::size_t kLaneColumns = 48;     // name, bar, speed and share have no room in fewer
constexpr std::size_t kRowsBesideLanes = 3;  // the bar, and what stood above
constexpr std::size_t kBarGap = 2;

std::string rate_text(double rate, const std::string& unit) {
  return with_thousands(static_cast<std::uint64_t>(std::llround(std::max(rate, 0.0)))) + " " +
         unit + "/s";
}

std::string percent_of(double fraction) {
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

// The lanes that do not work, for a place that does not show the others.
void add_lanes(const ProgressView& view, std::vector<std::string>& parts) {
  for (const auto& lane : view.reading.lanes) {
    if (!lane.state.empty()) parts.push_back(lane.name + " " + lane.state);
  }
}

std::string phase_text(const ProgressView& view) {
  if (view.elapsed_seconds < 1) return view.reading.phase;
  return fmt::format("{}, {:.0f} s", view.reading.phase, std::floor(view.elapsed_seconds));
}

// `parts` two spaces apart, as many from the left as fit whole.
std::string joined(const std::vector<std::string>& parts, std::size_t width) {
  std::string line;
  for (const auto& part : parts) {
    const auto longer = line + (line.empty() ? "" : "  ") + printable(part);
    if (display_width(longer) > width) break;
    line = longer;
  }
  return line;
}

std::string total_line(const ProgressView& view, const TerminalInfo& terminal, bool has_lanes) {
  const auto width = terminal.width;
  if (!view.reading.phase.empty()) return joined({phase_text(view)}, width);
  auto parts = parts_of(view);
  if (!has_lanes) add_lanes(view, parts);
  const auto& remarks = view.reading.remarks;
  parts.insert(parts.end(), remarks.begin(), remarks.end());
  if (!view.reading.fraction) return joined(parts, width);
  const auto percent = fmt::format("{:>5} ", percent_of(*view.reading.fraction));
  constexpr std::size_t kFrame = 2;  // the brackets around the bar
  const auto least = percent.size() + kFrame + kBarWidthMin;
  if (least > width) return fit_width(percent, width);
  auto tail = joined(parts, width - std::min(width, least + kBarGap));
  if (!tail.empty()) tail.insert(0, kBarGap, ' ');
  const auto room = width - percent.size() - kFrame - display_width(tail);
  const auto bar =
      bar_text(*view.reading.fraction, std::min(room, kBarWidthMax), terminal.characters());
  return fmt::format("{}[{}]{}", percent, styled(bar, {.role = Role::Good}, terminal.has_color),
                     tail);
}

// What all lanes together say of each.
struct LaneScale {
  std::size_t name_width = 0;
  std::size_t rate_width = 0;
  double fastest = 0;
  std::uint64_t count = 0;  // of all
};

LaneScale scale_of(const ProgressView& view) {
  LaneScale scale;
  const auto& lanes = view.reading.lanes;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    scale.count += lanes[i].count;
    scale.name_width = std::max(scale.name_width, display_width(printable(lanes[i].name)));
    if (view.lane_rates.empty()) continue;
    const auto text = rate_text(view.lane_rates[i], view.reading.counts.front().unit);
    scale.rate_width = std::max(scale.rate_width, text.size());
    scale.fastest = std::max(scale.fastest, view.lane_rates[i]);
  }
  return scale;
}

// " cpu:0  ██████████  912 texts/s   50 %": the bar shows the speed beside the fastest one's.
std::string lane_line(const ProgressView& view, std::size_t i, const LaneScale& scale,
                      const TerminalInfo& terminal) {
  const auto& lane = view.reading.lanes[i];
  const auto name = printable(lane.name);
  auto head = " " + name;
  head.append(scale.name_width - display_width(name) + kBarGap, ' ');
  const double rate = view.lane_rates.empty() ? 0 : view.lane_rates[i];
  const auto bar =
      bar_text(scale.fastest > 0 ? rate / scale.fastest : 0, kBarWidthMin, terminal.characters());
  std::vector<std::string> parts;
  if (!view.lane_rates.empty()) {
    const auto text = rate_text(rate, view.reading.counts.front().unit);
    parts.push_back(fmt::format("{:>{}}", text, scale.rate_width));
  }
  if (scale.count > 0) {
    const auto share = static_cast<double>(lane.count) / static_cast<double>(scale.count);
    parts.push_back(fmt::format("{:>3.0f} %", share * 100));
  }
  const auto used = display_width(head) + kBarWidthMin + kBarGap;
  auto tail = joined(parts, terminal.width - std::min(terminal.width, used));
  if (!tail.empty()) tail.insert(0, kBarGap, ' ');
  auto line = head + styled(bar, {.role = Role::Accent}, terminal.has_color) + tail;
  const auto state = printable(lane.state);
  const auto columns = used - kBarGap + display_width(tail) + kBarGap + display_width(state);
  if (!state.empty() && columns <= terminal.width) {
    line.append(kBarGap, ' ');
    line += styled(state, lane.state == "given up" ? kBad : kWarning, terminal.has_color);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

bool has_room_for_lanes(const ProgressView& view, const TerminalInfo& terminal) {
  const auto count = view.reading.lanes.size();
  const auto head_width = scale_of(view).name_width + 1 + kBarGap + kBarWidthMin;
  return count >= 2 && !view.reading.counts.empty() &&
         terminal.width >= std::max(kLaneColumns, head_width) &&
         terminal.height >= count + kRowsBesideLanes;
}

}  // namespace

ProgressView ProgressMeter::add(TimePoint now, ProgressReading reading) {
  // The newest sample that is at least a window old stays, as the base of the speeds.
  while (samples_.size() >= 2 &&
         (now - samples_[1].time >= kWindow || samples_.size() >= kSampleCountMax)) {
    samples_.pop_front();
  }
  if (!begin_) begin_ = now;
  if (reading.fraction) reading.fraction = fraction_ = std::max(fraction_, *reading.fraction);
  ProgressView view;
  view.elapsed_seconds = seconds(now - *begin_);
  if (reading.fraction) view.remaining_seconds = time_left_.add(now, *reading.fraction);
  if (!samples_.empty() && now > samples_.front().time) {
    const auto& base = samples_.front();
    const double elapsed = seconds(now - base.time);
    const auto rate = [elapsed](std::uint64_t count, std::uint64_t before) {
      return (static_cast<double>(count) - static_cast<double>(before)) / elapsed;
    };
    const auto unit_count = std::min(reading.counts.size(), base.reading.counts.size());
    for (std::size_t i = 0; i < unit_count; ++i) {
      view.rates_per_second.push_back(rate(reading.counts[i].count, base.reading.counts[i].count));
    }
    const bool has_same_lanes = reading.lanes.size() == base.reading.lanes.size();
    for (std::size_t i = 0; has_same_lanes && i < reading.lanes.size(); ++i) {
      view.lane_rates.push_back(rate(reading.lanes[i].count, base.reading.lanes[i].count));
    }
  }
  view.reading = reading;
  samples_.push_back({now, std::move(reading)});
  return view;
}

std::vector<std::string> render_progress(const ProgressView& view, const TerminalInfo& terminal) {
  const bool has_lanes = has_room_for_lanes(view, terminal);
  std::vector<std::string> lines;
  const auto scale = has_lanes ? scale_of(view) : LaneScale{};
  for (std::size_t i = 0; has_lanes && i < view.reading.lanes.size(); ++i) {
    lines.push_back(lane_line(view, i, scale, terminal));
  }
  lines.push_back(total_line(view, terminal, has_lanes));
  return lines;
}

std::string describe_progress(const ProgressView& view) {
  auto parts = parts_of(view);
  if (!view.reading.phase.empty()) parts = {phase_text(view)};
  if (view.reading.fraction && view.reading.phase.empty()) {
    parts.insert(parts.begin(), percent_of(*view.reading.fraction));
  }
  add_lanes(view, parts);
  parts.insert(parts.end(), view.reading.remarks.begin(), view.reading.remarks.end());
  return printable(fmt::format("{}", fmt::join(parts, ", ")));
}

std::string format_duration(double seconds) {
  const auto total = static_cast<std::uint64_t>(std::ceil(std::max(seconds, 0.0)));
  const auto hours = total / 3600;
  const auto minutes = total / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60);
  return fmt::format("{}:{:02}", minutes, total % 60);
}

}  // namespace muster
