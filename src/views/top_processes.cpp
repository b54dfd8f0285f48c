// One list for what runs on GPUs and on CPUs: a process that a driver and the kernel both tell of
// is one line.
// Columns appear only if some process has a value for them, so a machine without GPUs has no
// empty GPU columns. Pid 0 means a process of another container, which the driver counts and
// cannot name.
#include "views/top_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "terminal/table.h"
#include "terminal/text_width.h"
#include "terminal/text_wrap.h"
#include "views/reading_text.h"

namespace muster {
namespace {

constexpr std::size_t kKindScreenWidth = 80;  // narrower, kinds have no room
// What the kernel keeps of a process's name. Source: Linux, include/linux/sched.h, TASK_COMM_LEN.
constexpr std::size_t kCommandLeast = 15;

std::string_view kind_name(GpuProcessKind kind) {
  switch (kind) {
    case GpuProcessKind::Compute:
      return "compute";
    case GpuProcessKind::Graphics:
      return "graphics";
    case GpuProcessKind::Mps:
      return "mps";
  }
  return "";
}

struct ProcessColumn {
  std::string_view title;
  Align align = Align::Right;
  std::size_t width = 0;
  std::string (*cell)(const ShownProcess& shown, const TelemetrySnapshot& snapshot) = nullptr;
  int leaves = 0;  // on a narrow screen: 1 first, 0 never
};

std::string pid_cell(const ShownProcess& shown, const TelemetrySnapshot&) {
  return shown.pid() == 0 ? "elsewhere" : std::to_string(shown.pid());
}

std::string cpu_cell(const ShownProcess& shown, const TelemetrySnapshot&) {
  return shown.host ? percent_text(shown.host->cores) : "-";
}

std::string memory_cell(const ShownProcess& shown, const TelemetrySnapshot&) {
  return shown.host ? human_bytes(shown.host->memory_bytes) : "-";
}

std::string device_cell(const ShownProcess& shown, const TelemetrySnapshot& snapshot) {
  if (shown.device) return snapshot.devices[*shown.device].name;
  return shown.host && !shown.host->device.empty() ? shown.host->device : "-";
}

std::string gpu_memory_cell(const ShownProcess& shown, const TelemetrySnapshot&) {
  return shown.gpu && shown.gpu->memory_bytes ? human_bytes(*shown.gpu->memory_bytes) : "-";
}

std::string kind_cell(const ShownProcess& shown, const TelemetrySnapshot&) {
  return shown.gpu ? std::string(kind_name(shown.gpu->kind)) : "-";
}

std::string command_cell(const ShownProcess& shown, const TelemetrySnapshot&) {
  const auto command = shown.command();
  if (shown.host && !shown.host->models.empty()) return command + " " + shown.host->models;
  return command.empty() ? "-" : command;
}

// A command is cut between words; a first word that alone is too wide, within it.
std::string fit_command(std::string_view text, std::size_t width) {
  const auto shown = printable(text);
  const auto first = std::string_view(shown).substr(0, shown.find(' '));
  return display_width(first) < width ? fit_whole_words(shown, width) : fit_width(shown, width);
}

// Takes columns away until a command can be read.
void make_room(std::vector<ProcessColumn>& columns, std::size_t width) {
  for (;;) {
    std::size_t taken = 0;
    auto next = columns.end();
    for (auto column = columns.begin(); column != columns.end(); ++column) {
      if (column->width > 0) taken += column->width + 1;
      const bool may_leave = column->leaves > 0;
      if (may_leave && (next == columns.end() || column->leaves < next->leaves)) next = column;
    }
    if (taken + kCommandLeast <= width || next == columns.end()) return;
    columns.erase(next);
  }
}

// The command comes last, with a width of 0 that stands for the rest of the row.
std::vector<ProcessColumn> columns_for(const std::vector<ShownProcess>& shown, std::size_t width) {
  const auto any = [&](auto&& is_so) { return std::any_of(shown.begin(), shown.end(), is_so); };
  const bool has_gpus = any([](const ShownProcess& one) { return one.gpu != nullptr; });
  std::vector<ProcessColumn> columns{{"PID", Align::Right, 9, pid_cell}};
  if (any([](const ShownProcess& one) { return one.host != nullptr; })) {
    columns.push_back({"CPU%", Align::Right, 5, cpu_cell, 5});
    columns.push_back({"MEMORY", Align::Right, 7, memory_cell, 2});
  }
  // Without a GPU most processes are of no device.
  columns.push_back({"DEVICE", Align::Left, 8, device_cell, has_gpus ? 4 : 1});
  if (has_gpus) {
    columns.push_back({"GPU MEM", Align::Right, 7, gpu_memory_cell, 3});
    if (width >= kKindScreenWidth) columns.push_back({"KIND", Align::Left, 8, kind_cell});
  }
  columns.push_back({"COMMAND", Align::Left, 0, command_cell});
  make_room(columns, width);
  return columns;
}

template <typename TextOf>
void put_row(TopDrawing& drawing, const std::vector<ProcessColumn>& columns, TextOf&& text_of,
             Style style) {
  auto& canvas = drawing.canvas;
  std::size_t begin = 0;
  for (const auto& column : columns) {
    if (begin >= canvas.width()) break;
    const auto width =
        column.width == 0 ? canvas.width() - begin : std::min(column.width, canvas.width() - begin);
    if (column.width == 0) {
      canvas.put_left(drawing.row, begin, width, fit_command(text_of(column), width), style);
    } else if (column.align == Align::Right) {
      canvas.put_right(drawing.row, begin, width, text_of(column), style);
    } else {
      canvas.put_left(drawing.row, begin, width, text_of(column), style);
    }
    begin += width + 1;
  }
  ++drawing.row;
}

// Workers of ours stand out: they are what one looks for first.
Style style_of(const ShownProcess& shown) {
  const bool is_worker = shown.host && !shown.host->device.empty();
  return is_worker ? Style{.role = Role::Accent} : Style{};
}

}  // namespace

void draw_processes(TopDrawing& drawing) {
  const auto& snapshot = drawing.data.snapshot;
  const auto shown = shown_processes(snapshot, drawing.state);
  const auto& devices = snapshot.devices;
  const bool is_known =
      !snapshot.processes.empty() || std::any_of(devices.begin(), devices.end(), is_gpu);
  if (!is_known || drawing.rows_left() < 2) return;  // nobody has looked for any
  const auto columns = columns_for(shown, drawing.canvas.width());
  const bool is_page = drawing.state.page == TopPage::Processes;
  put_row(
      drawing, columns, [](const auto& column) { return std::string(column.title); }, kTopTitle);
  if (shown.empty()) return drawing.put_line("          no process", kQuiet);
  const auto room = drawing.rows_left();
  const auto page = shown.size() <= room ? shown.size() : room - 1;
  const auto chosen = std::find_if(shown.begin(), shown.end(), [&](const ShownProcess& one) {
    return is_page && drawing.state.pid == one.pid();
  });
  const auto first =
      first_of_page(static_cast<std::size_t>(chosen - shown.begin()), shown.size(), page);
  const auto end = std::min(shown.size(), first + page);
  for (auto i = first; i < end; ++i) {
    drawing.layout.lines.push_back({drawing.row, shown[i].device, shown[i].pid()});
    put_row(
        drawing, columns,
        [&](const ProcessColumn& column) { return column.cell(shown[i], snapshot); },
        style_of(shown[i]));
    if (is_page && drawing.state.pid == shown[i].pid()) {
      drawing.canvas.reverse(drawing.row - 1, 0, drawing.canvas.width());
    }
  }
  if (is_page) drawing.layout.page_size = std::max<std::size_t>(page, 1);
  if (end < shown.size() || first > 0) {
    drawing.put_line(
        fmt::format("          {} to {} of {} processes", first + 1, end, shown.size()), kQuiet);
  }
}

}  // namespace muster
