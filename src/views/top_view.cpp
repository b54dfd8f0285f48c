#include "views/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/text.h"
#include "terminal/bars.h"
#include "terminal/text_width.h"
#include "views/reading_text.h"
#include "views/top_columns.h"
#include "views/top_help.h"
#include "views/top_notes.h"

namespace muster {
namespace {

constexpr std::size_t kHeaderRows = 2;
constexpr std::size_t kFooterRows = 1;
constexpr std::size_t kNotesLeast = 2;        // on the lowest screen
constexpr std::size_t kRowsPerNote = 6;       // so that notes never push the devices out
constexpr std::size_t kProcessRowsLeast = 4;  // a title and three
constexpr std::size_t kProcessRowsRoomy = 8;  // before devices get two lines
constexpr std::size_t kTwoLineColumns = 100;  // narrower, a second line has nothing to say
constexpr std::size_t kDetailIndent = 9;      // below the names

constexpr Style kTitle{.role = Role::Quiet, .is_reversed = false};

// A screen being drawn from top to bottom.
struct Drawing {
  const TopData& data;
  const TopState& state;
  Canvas& canvas;
  TopLayout layout = {};
  std::size_t row = 0;

  std::size_t body_end() const {
    const auto kept = state.has_keys && canvas.height() > kFooterRows ? kFooterRows : 0;
    return canvas.height() - kept;
  }
  std::size_t rows_left() const { return body_end() > row ? body_end() - row : 0; }
};

// Pieces side by side as far as they fit whole before column `end`.
std::size_t put_pieces(Canvas& canvas, std::size_t row, std::size_t column, std::size_t end,
                       std::span<const std::string> pieces, Style style) {
  for (const auto& piece : pieces) {
    if (column + display_width(piece) > end) break;
    column += canvas.put(row, column, piece, style) + 2;
  }
  return column;
}

std::string replay_text(const ReplayPlace& place) {
  return fmt::format("replay {}/{}{}", place.index + 1, place.count,
                     place.is_playing ? fmt::format(" x{}", place.speed) : " stopped");
}

void draw_header(Drawing& drawing) {
  auto& canvas = drawing.canvas;
  const auto& data = drawing.data;
  const auto width = canvas.width();
  const auto clock_width = std::min(width, display_width(data.clock));
  canvas.put_right(0, width - clock_width, clock_width, data.clock, {.role = Role::Quiet});
  const auto end = width - clock_width - (clock_width > 0 ? 1 : 0);
  const auto name = fit_width("muster top  " + printable(data.snapshot.machine), end);
  const auto column = canvas.put(0, 0, name, {.role = Role::Heading, .is_bold = true}) + 2;
  put_pieces(canvas, 0, column, end, machine_totals(data.snapshot, data.trends), {.is_bold = true});

  std::string mode;
  if (data.replay) mode = replay_text(*data.replay);
  if (drawing.state.is_paused) mode = "PAUSED";
  const auto mode_width = std::min(width, display_width(mode));
  canvas.put_right(1, width - mode_width, mode_width, mode,
                   {.role = Role::Warning, .is_bold = true});
  put_pieces(canvas, 1, 0, width - mode_width, machine_facts(data), {.role = Role::Quiet});
  drawing.row = kHeaderRows;
}

void draw_notes(Drawing& drawing) {
  const auto notes = top_notes(drawing.data);
  const auto most = drawing.state.has_keys
                        ? std::max(kNotesLeast, drawing.canvas.height() / kRowsPerNote)
                        : notes.size();
  const auto shown = notes.size() <= most ? notes.size() : most - 1;
  const auto width = drawing.canvas.width();
  for (std::size_t i = 0; i < shown; ++i) {
    drawing.canvas.put_left(drawing.row++, 0, width, notes[i].text, notes[i].style);
  }
  if (shown < notes.size()) {
    drawing.canvas.put_left(drawing.row++, 0, width,
                            fmt::format("and {} more", notes.size() - shown),
                            {.role = Role::Quiet});
  }
}

void draw_field(Canvas& canvas, std::size_t row, const PlacedColumn& place, const TopCell& cell) {
  if (place.column->align == Align::Right) {
    canvas.put_right(row, place.begin, place.width, cell.text, cell.style);
  } else {
    canvas.put_left(row, place.begin, place.width, cell.text, cell.style);
  }
}

void draw_titles(Drawing& drawing, std::span<const PlacedColumn> columns) {
  drawing.layout.title_row = drawing.row;
  for (const auto& place : columns) {
    const auto& sort = place.column->sort;
    const bool is_sorted_by = sort && *sort == drawing.state.sort;
    draw_field(drawing.canvas, drawing.row, place,
               {std::string(place.column->title), {.role = Role::Quiet, .is_bold = is_sorted_by}});
    if (sort) {
      drawing.layout.titles.push_back({place.begin, place.begin + place.width, *sort});
    }
  }
  ++drawing.row;
}

// A device that is down has no readings: name it, and say why.
void draw_down(Drawing& drawing, std::span<const PlacedColumn> columns, const TopRow& row) {
  std::size_t column = 0;
  for (const auto& place : columns) {
    if (place.column->align == Align::Right) break;
    draw_field(drawing.canvas, drawing.row, place, place.column->cell(row, place.width));
    column = place.begin + place.width + 1;
  }
  if (column >= drawing.canvas.width()) return;
  drawing.canvas.put_left(drawing.row, column, drawing.canvas.width() - column,
                          "DOWN " + row.status.down_reason, {.role = Role::Bad, .is_bold = true});
}

void draw_detail(Drawing& drawing, const TopRow& row) {
  auto text = device_details(row.status);
  if (!row.status.core_loads.empty()) {
    const auto& loads = row.status.core_loads;
    text = "cores " + sparkline_text(std::vector<std::optional<double>>(loads.begin(), loads.end()),
                                     row.characters);
  }
  const auto width = drawing.canvas.width();
  drawing.canvas.put_left(drawing.row, kDetailIndent, width - std::min(width, kDetailIndent), text,
                          {.role = Role::Quiet});
}

// The page of a list that holds what is chosen, else the first one.
std::size_t first_of_page(std::size_t chosen, std::size_t count, std::size_t page_size) {
  if (chosen >= count || page_size == 0) return 0;
  return chosen / page_size * page_size;
}

void draw_device(Drawing& drawing, std::span<const PlacedColumn> columns, std::uint32_t device,
                 bool has_details) {
  const TopRow row{drawing.data.snapshot.devices[device], drawing.data.trends[device],
                   drawing.canvas.characters()};
  if (row.status.is_up) {
    for (const auto& place : columns) {
      draw_field(drawing.canvas, drawing.row, place, place.column->cell(row, place.width));
    }
  } else {
    draw_down(drawing, columns, row);
  }
  if (drawing.state.device == device) {
    drawing.canvas.reverse(drawing.row, 0, drawing.canvas.width());
  }
  drawing.layout.lines.push_back({drawing.row, device, std::nullopt});
  ++drawing.row;
  if (has_details) {
    draw_detail(drawing, row);
    drawing.layout.lines.push_back({drawing.row, device, std::nullopt});
    ++drawing.row;
  }
}

void draw_devices(Drawing& drawing, std::span<const TopColumn> table) {
  const auto columns = place_columns(table, drawing.canvas.width());
  const auto shown = shown_devices(drawing.data.snapshot, drawing.state);
  draw_titles(drawing, columns);
  const auto room = drawing.rows_left();
  const bool has_details =
      drawing.canvas.width() >= kTwoLineColumns && room >= 2 * shown.size() + kProcessRowsRoomy;
  const auto lines = has_details ? 2 * shown.size() : shown.size();
  const auto kept = room > 2 * kProcessRowsLeast ? kProcessRowsLeast : 0;
  auto page = shown.size();
  if (lines + kept > room) page = room - std::min(room, kept + 1);  // one says which part it is
  drawing.layout.page_size = std::max<std::size_t>(page, 1);
  const auto chosen =
      drawing.state.device
          ? std::find(shown.begin(), shown.end(), *drawing.state.device) - shown.begin()
          : std::ptrdiff_t{0};
  const auto first = first_of_page(static_cast<std::size_t>(chosen), shown.size(), page);
  const auto end = std::min(shown.size(), first + page);
  for (auto i = first; i < end; ++i) draw_device(drawing, columns, shown[i], has_details);
  if (page < shown.size() && drawing.rows_left() > 0) {
    drawing.canvas.put_left(
        drawing.row++, 0, drawing.canvas.width(),
        fmt::format("devices {} to {} of {}; PageDown goes on", first + 1, end, shown.size()),
        {.role = Role::Quiet});
  }
  if (shown.empty() && drawing.rows_left() > 0) {
    drawing.canvas.put_left(drawing.row++, 0, drawing.canvas.width(),
                            "no device has \"" + drawing.state.filter + "\" in its name",
                            {.role = Role::Quiet});
  }
}

std::string_view process_kind_name(GpuProcessKind kind) {
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

constexpr std::size_t kPidWidth = 10;
constexpr std::size_t kDeviceWidth = 9;
constexpr std::size_t kKindWidth = 9;
constexpr std::size_t kMemoryWidth = 8;
constexpr std::size_t kCommandColumn = kPidWidth + kDeviceWidth + kKindWidth + kMemoryWidth + 4;

void put_process(Canvas& canvas, std::size_t row, const std::array<std::string, 5>& cells,
                 Style style) {
  canvas.put_right(row, 0, kPidWidth, cells[0], style);
  canvas.put_left(row, kPidWidth + 1, kDeviceWidth, cells[1], style);
  canvas.put_left(row, kPidWidth + kDeviceWidth + 2, kKindWidth, cells[2], style);
  canvas.put_right(row, kPidWidth + kDeviceWidth + kKindWidth + 3, kMemoryWidth, cells[3], style);
  if (canvas.width() > kCommandColumn) {
    canvas.put_left(row, kCommandColumn, canvas.width() - kCommandColumn, cells[4], style);
  }
}

void draw_processes(Drawing& drawing) {
  const auto shown = shown_processes(drawing.data.snapshot, drawing.state);
  const auto& devices = drawing.data.snapshot.devices;
  const bool has_gpu = std::any_of(devices.begin(), devices.end(), is_gpu);
  if (!has_gpu || drawing.rows_left() < 2) return;
  auto& canvas = drawing.canvas;
  const bool is_page = drawing.state.page == TopPage::Processes;
  put_process(canvas, drawing.row, {"PID", "DEVICE", "KIND", "MEMORY", "COMMAND"}, kTitle);
  ++drawing.row;
  if (shown.empty()) {
    canvas.put(drawing.row++, kPidWidth + 1, "no process", {.role = Role::Quiet});
    return;
  }
  const auto room = drawing.rows_left();
  const auto page = shown.size() <= room ? shown.size() : room - 1;
  const auto chosen = std::find_if(shown.begin(), shown.end(), [&](const ShownProcess& one) {
    return is_page && drawing.state.pid == one.process->pid;
  });
  const auto first =
      first_of_page(static_cast<std::size_t>(chosen - shown.begin()), shown.size(), page);
  const auto end = std::min(shown.size(), first + page);
  for (auto i = first; i < end; ++i) {
    const auto& process = *shown[i].process;
    put_process(canvas, drawing.row,
                {process.pid == 0 ? "elsewhere" : std::to_string(process.pid),
                 drawing.data.snapshot.devices[shown[i].device].name,
                 std::string(process_kind_name(process.kind)),
                 process.memory_bytes ? human_bytes(*process.memory_bytes) : "-",
                 process.command.empty() ? "-" : process.command},
                {});
    if (is_page && drawing.state.pid == process.pid) {
      canvas.reverse(drawing.row, 0, canvas.width());
    }
    drawing.layout.lines.push_back({drawing.row, shown[i].device, process.pid});
    ++drawing.row;
  }
  if (is_page) drawing.layout.page_size = std::max<std::size_t>(page, 1);
  if (end < shown.size() || first > 0) {
    canvas.put(drawing.row++, kPidWidth + 1,
               fmt::format("{} to {} of {} processes", first + 1, end, shown.size()),
               {.role = Role::Quiet});
  }
}

void draw_help(Drawing& drawing) {
  for (const auto& line : help_lines()) {
    if (drawing.rows_left() == 0) return;
    drawing.canvas.put_left(drawing.row++, 0, drawing.canvas.width(), line);
  }
}

void draw_footer(const Drawing& drawing) {
  auto& canvas = drawing.canvas;
  const auto& state = drawing.state;
  const auto row = canvas.height() - 1;
  const auto width = canvas.width();
  if (state.question) {
    canvas.put_left(row, 0, width,
                    fmt::format("{} {}: y sends SIGTERM, 9 sends SIGKILL, any other key nothing",
                                state.question->pid, state.question->command),
                    {.role = Role::Warning, .is_bold = true});
    return;
  }
  if (state.is_typing_filter) {
    canvas.put_left(row, 0, width, "filter: " + state.filter + "_  Enter keeps it, Esc clears it",
                    {.is_bold = true});
    return;
  }
  if (!state.notice.empty()) {
    canvas.put_left(row, 0, width, state.notice, {.role = Role::Warning, .is_bold = true});
    return;
  }
  std::vector<std::string> keys{"q quit",
                                "? help",
                                "s sort: " + std::string(sort_key_name(state.sort)),
                                "/ filter" + (state.filter.empty() ? "" : ": " + state.filter),
                                "p processes",
                                "e energy"};
  if (drawing.data.replay) {
    keys = {keys[0], keys[1], "left/right step", "space play/stop", "+/- speed", keys[2], keys[3]};
  } else {
    keys.insert(keys.end(), {"k end", "space pause"});
  }
  put_pieces(canvas, row, 0, width, keys, {.role = Role::Quiet});
}

}  // namespace

TopLayout draw_top(const TopData& data, const TopState& state, Canvas& canvas) {
  Drawing drawing{data, state, canvas};
  if (canvas.width() == 0 || canvas.height() == 0) return {};
  draw_header(drawing);
  switch (state.page) {
    case TopPage::Help:
      draw_help(drawing);
      break;
    case TopPage::Processes:
      draw_processes(drawing);
      break;
    case TopPage::Devices:
      draw_notes(drawing);
      draw_devices(drawing, device_columns());
      draw_processes(drawing);
      break;
    case TopPage::Energy:
      draw_notes(drawing);
      draw_devices(drawing, energy_columns());
      break;
  }
  if (state.has_keys) draw_footer(drawing);
  return drawing.layout;
}

}  // namespace muster
