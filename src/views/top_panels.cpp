// What fills the screen between devices and processes. Every panel says how many rows it can use,
// so that a large screen shows more and not only emptier.
// Rows are divided before anything is drawn: processes keep a few, cores get a share, plots take
// what no list needs. Plots are drawn only where there is history, so the first seconds show
// lists instead of empty frames. Means over devices are weighted by what they have: cores, or
// bytes of memory.
#include "views/top_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "terminal/bars.h"
#include "views/reading_text.h"

namespace muster {
namespace {

constexpr std::size_t kProcessRowsLeast = 4;  // a title and three
constexpr std::size_t kPlotRowsLeast = 4;     // lower, a plot tells no more than a line of marks
constexpr std::size_t kPlotRowsMost = 40;
constexpr std::size_t kOncePlotRows = 8;
constexpr std::size_t kCellLeast = 16;  // of a core: its number, a bar of seven, its share
constexpr std::size_t kCellMost = 44;   // wider bars are no easier to read
constexpr std::size_t kTwoPlotsWidth = 60;
constexpr std::size_t kScaleWidth = 5;  // "100% "
constexpr std::size_t kKnownLeast = 3;  // seconds of history that make a plot

struct Core {
  std::uint32_t cpu = 0;
  float load = 0;
};

std::vector<Core> cores_of(const TelemetrySnapshot& snapshot) {
  std::vector<Core> cores;
  for (const auto& status : snapshot.devices) {
    const auto& cpus = status.identity.device.cpus;
    if (is_gpu(status) || status.core_loads.size() != cpus.size()) continue;
    for (std::size_t i = 0; i < cpus.size(); ++i) cores.push_back({cpus[i], status.core_loads[i]});
  }
  return cores;
}

bool has_gpu(const TelemetrySnapshot& snapshot) {
  return std::any_of(snapshot.devices.begin(), snapshot.devices.end(), is_gpu);
}

// How the cores stand beside each other; columns is 0 where only marks have room.
struct CoreGrid {
  std::size_t columns = 0;
  std::size_t rows = 0;
};

std::size_t divided_up(std::size_t count, std::size_t by) { return (count + by - 1) / by; }

// Wide cells first; more columns only when the rows run out, and marks without numbers when the
// columns get too narrow.
CoreGrid grid_of(std::size_t count, std::size_t width, std::size_t rows_most) {
  if (count == 0 || rows_most == 0) return {};
  CoreGrid grid;
  grid.columns = std::clamp<std::size_t>(width / kCellMost, 1, count);
  if (divided_up(count, grid.columns) > rows_most) grid.columns = divided_up(count, rows_most);
  grid.rows = divided_up(count, grid.columns);
  if (width / grid.columns >= kCellLeast) return grid;
  const auto marks = width > kScaleWidth ? width - kScaleWidth : 1;
  return {0, std::min(divided_up(count, marks), rows_most)};
}

void draw_core(Canvas& canvas, std::size_t row, std::size_t column, std::size_t width,
               const Core& core) {
  constexpr std::size_t kNumber = 4;
  constexpr std::size_t kShare = 4;
  canvas.put_right(row, column, kNumber, std::to_string(core.cpu), kQuiet);
  const auto bar = width - std::min(width, kNumber + 1 + 1 + kShare + 1);
  const Style style{.role = Role::Good};
  canvas.put(row, column + kNumber + 1, bar_text(core.load, bar, canvas.characters()), style);
  canvas.put_right(row, column + kNumber + 1 + bar + 1, kShare, percent_text(core.load) + "%");
}

void draw_core_marks(TopDrawing& drawing, std::span<const Core> cores, std::size_t rows) {
  const auto width = drawing.canvas.width();
  const auto in_a_row = std::max<std::size_t>(width - std::min(width, kScaleWidth), 1);
  for (std::size_t i = 0; i < rows && i * in_a_row < cores.size(); ++i) {
    const auto part = cores.subspan(i * in_a_row, std::min(in_a_row, cores.size() - i * in_a_row));
    std::vector<std::optional<double>> loads;
    for (const auto& core : part) loads.emplace_back(core.load);
    drawing.canvas.put_right(drawing.row, 0, kScaleWidth - 1, std::to_string(part.front().cpu),
                             kQuiet);
    drawing.canvas.put(drawing.row, kScaleWidth, sparkline_text(loads, drawing.canvas.characters()),
                       {.role = Role::Good});
    ++drawing.row;
  }
}

using Line = std::vector<std::optional<double>>;

// What a pair of plots is about.
struct Subject {
  std::string name;
  std::vector<std::size_t> devices;  // into the snapshot
};

Subject subject_of(const TopDrawing& drawing) {
  const auto& devices = drawing.data.snapshot.devices;
  if (drawing.state.device && *drawing.state.device < devices.size()) {
    return {devices[*drawing.state.device].name, {*drawing.state.device}};
  }
  const bool of_gpus = has_gpu(drawing.data.snapshot);
  Subject subject;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (is_gpu(devices[i]) == of_gpus && !is_slice(devices[i])) subject.devices.push_back(i);
  }
  const auto count = subject.devices.size();
  subject.name = count == 1 ? devices[subject.devices.front()].name
                            : fmt::format("all {} {}", count, of_gpus ? "GPUs" : "CPUs");
  return subject;
}

// The mean over devices at each second, by weights; unknown where none of them is known.
template <typename LineOf, typename WeightOf>
Line mean_line(const Subject& subject, LineOf&& line_of, WeightOf&& weight_of) {
  Line mean(kTrendSeconds);
  for (std::size_t second = 0; second < kTrendSeconds; ++second) {
    double sum = 0;
    double weights = 0;
    for (const auto device : subject.devices) {
      const auto& line = line_of(device);
      if (second >= line.size() || !line[second]) continue;
      sum += *line[second] * weight_of(device);
      weights += weight_of(device);
    }
    if (weights > 0) mean[second] = sum / weights;
  }
  return mean;
}

Line busy_line(const TopData& data, const Subject& subject) {
  return mean_line(
      subject, [&](std::size_t i) -> const Line& { return data.trends[i].busy; },
      [&](std::size_t i) {
        const auto& status = data.snapshot.devices[i];
        const auto cpus = status.identity.device.cpus.size();
        return is_gpu(status) || cpus == 0 ? 1.0 : static_cast<double>(cpus);
      });
}

Line memory_line(const TopData& data, const Subject& subject) {
  return mean_line(
      subject, [&](std::size_t i) -> const Line& { return data.trends[i].memory; },
      [&](std::size_t i) { return memory_use(data.snapshot.devices[i]).size.value_or(0); });
}

bool is_known(const Line& line) {
  const auto known = [](const auto& value) { return value.has_value(); };
  return std::count_if(line.begin(), line.end(), known) >= static_cast<std::ptrdiff_t>(kKnownLeast);
}

struct Plot {
  std::string title;
  Line line;
  Style style;
};

// The title, and the newest values that fit with their scale at the left.
void draw_plot(TopDrawing& drawing, const Plot& plot, std::size_t column, std::size_t width,
               std::size_t rows) {
  auto& canvas = drawing.canvas;
  canvas.put_left(drawing.row, column, width, plot.title, kTopTitle);
  if (width <= kScaleWidth || rows < 2) return;
  const auto shown = std::min(width - kScaleWidth, plot.line.size());
  const auto values = std::span(plot.line).last(shown);
  const auto marks = plot_rows(values, rows - 1, canvas.characters());
  const auto first = drawing.row + 1;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    canvas.put(first + i, column + kScaleWidth, marks[i], plot.style);
  }
  canvas.put_right(first, column, kScaleWidth - 1, "100%", kQuiet);
  canvas.put_right(first + marks.size() - 1, column, kScaleWidth - 1, "0%", kQuiet);
}

std::string memory_title(const TopData& data, const Subject& subject) {
  double used = 0;
  double size = 0;
  for (const auto device : subject.devices) {
    const auto use = memory_use(data.snapshot.devices[device]);
    if (!use.used || !use.size) continue;
    used += *use.used;
    size += *use.size;
  }
  if (size <= 0) return "MEMORY of " + subject.name;
  return fmt::format("MEMORY {:.0f} % of {}, {} GB", used / size * 100, subject.name,
                     gigabytes_pair(used, size));
}

std::string busy_title(const Line& line, const Subject& subject) {
  const auto now = line.empty() ? std::nullopt : line.back();
  return now ? fmt::format("BUSY {:.0f} % of {}", *now * 100, subject.name)
             : "BUSY of " + subject.name;
}

}  // namespace

// A GPU machine gives its cores less room, since its GPUs are what is looked at.
PanelRows divide_rows(const TopDrawing& drawing, std::size_t process_count) {
  const auto all = drawing.rows_left();
  const auto kept = std::min(process_count + 1, kProcessRowsLeast);
  auto left = all - std::min(all, kept);
  PanelRows rows;
  const auto& snapshot = drawing.data.snapshot;
  const auto share = has_gpu(snapshot) ? all / 5 : all / 3;
  const auto most = std::min(left, share);
  const auto grid = grid_of(cores_of(snapshot).size(), drawing.canvas.width(),
                            most - std::min<std::size_t>(most, 1));
  if (grid.rows > 0) rows.cores = grid.rows + 1;
  left -= rows.cores;

  const auto subject = subject_of(drawing);
  // On a screen they have their place from the start; a printed frame has no time to fill them.
  const bool has_plots = drawing.state.has_keys || is_known(busy_line(drawing.data, subject)) ||
                         is_known(memory_line(drawing.data, subject));
  const auto over = all - std::min(all, rows.cores + process_count + 1);
  auto wanted = std::clamp(over, all / 3, std::max(all / 3, kPlotRowsMost));
  if (!drawing.state.has_keys) wanted = kOncePlotRows;
  rows.plots = std::min({wanted, left, kPlotRowsMost});
  if (!has_plots || rows.plots < kPlotRowsLeast) rows.plots = 0;
  return rows;
}

void draw_cores(TopDrawing& drawing, std::size_t rows) {
  if (rows < 2 || drawing.rows_left() < rows) return;
  const auto cores = cores_of(drawing.data.snapshot);
  drawing.put_line(fmt::format("CORES, {}", cores.size()), kTopTitle);
  const auto width = drawing.canvas.width();
  const auto grid = grid_of(cores.size(), width, rows - 1);
  if (grid.columns == 0) return draw_core_marks(drawing, cores, rows - 1);
  const auto cell = std::min(width / grid.columns, kCellMost);
  for (std::size_t i = 0; i < cores.size(); ++i) {
    draw_core(drawing.canvas, drawing.row + i % grid.rows, i / grid.rows * cell, cell, cores[i]);
  }
  drawing.row += grid.rows;
}

void draw_plots(TopDrawing& drawing, std::size_t rows) {
  if (rows == 0 || drawing.rows_left() < rows) return;
  const auto subject = subject_of(drawing);
  const auto busy = busy_line(drawing.data, subject);
  const Plot plots[] = {{busy_title(busy, subject), busy, {.role = Role::Good}},
                        {memory_title(drawing.data, subject),
                         memory_line(drawing.data, subject),
                         {.role = Role::Accent}}};
  const auto width = drawing.canvas.width();
  if (width < kTwoPlotsWidth) {
    draw_plot(drawing, plots[0], 0, width, rows);
  } else {
    constexpr std::size_t kGap = 2;
    const auto half = (width - kGap) / 2;
    draw_plot(drawing, plots[0], 0, half, rows);
    draw_plot(drawing, plots[1], half + kGap, half, rows);
  }
  drawing.row += rows;
}

}  // namespace muster
