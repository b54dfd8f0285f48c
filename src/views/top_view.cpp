// A screen is drawn from top to bottom: what the machine does, what is wrong, the devices, and then
// cores, plots and processes share the rows that are left.
// Drawing also yields the layout: which row is which device or process, and where titles are.
// Clicks are answered from the last frame's layout, so they hit what was on the screen. Lists
// and panels ask how many rows are left before they draw.
#include "views/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "terminal/text_width.h"
#include "terminal/text_wrap.h"
#include "views/reading_text.h"
#include "views/top_columns.h"
#include "views/top_drawing.h"
#include "views/top_frame.h"
#include "views/top_help.h"
#include "views/top_notes.h"
#include "views/top_panels.h"
#include "views/top_processes.h"

namespace muster {
namespace {

constexpr std::size_t kWidthLeast = 40;  // below, the names of devices and their loads do not fit
constexpr std::size_t kHeightLeast = 8;  // below, there is no row for a device and a process
constexpr std::size_t kNotesLeast = 2;   // on the lowest screen
constexpr std::size_t kRowsPerNote = 6;  // so that notes never push the devices out
constexpr std::size_t kProcessRowsLeast = 4;  // a title and three
constexpr std::size_t kDetailIndent = 9;      // below the names

void draw_notes(TopDrawing& drawing) {
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
                            fmt::format("and {} more", notes.size() - shown), kQuiet);
  }
}

void draw_field(Canvas& canvas, std::size_t row, const PlacedColumn& place, const TopCell& cell) {
  if (place.column.align == Align::Right) {
    canvas.put_right(row, place.begin, place.width, cell.text, cell.style);
  } else {
    canvas.put_left(row, place.begin, place.width, cell.text, cell.style);
  }
}

// Titles are drawn and noted for clicks in one place, so that both have the same bounds.
void draw_titles(TopDrawing& drawing, std::span<const PlacedColumn> columns) {
  drawing.layout.title_row = drawing.row;
  for (const auto& place : columns) {
    const auto& sort = place.column.sort;
    const bool is_sorted_by = sort && *sort == drawing.state.sort;
    draw_field(drawing.canvas, drawing.row, place,
               {std::string(place.column.title), {.role = Role::Quiet, .is_bold = is_sorted_by}});
    if (sort) {
      drawing.layout.titles.push_back({place.begin, place.begin + place.width, *sort});
    }
  }
  ++drawing.row;
}

// A device that is down has no readings: name it, and say why.
void draw_down(TopDrawing& drawing, std::span<const PlacedColumn> columns, const TopRow& row) {
  std::size_t column = 0;
  for (const auto& place : columns) {
    if (place.column.align == Align::Right) break;
    draw_field(drawing.canvas, drawing.row, place, place.column.cell(row, place.width));
    column = place.begin + place.width + 1;
  }
  if (column >= drawing.canvas.width()) return;
  drawing.canvas.put_left(drawing.row, column, drawing.canvas.width() - column,
                          "DOWN " + row.status.down_reason, kBad);
}

// Of the chosen device: what is worth a line and not a column.
void draw_detail(TopDrawing& drawing, const DeviceStatus& status, std::uint32_t device) {
  const auto width = drawing.canvas.width();
  drawing.canvas.put_left(drawing.row, kDetailIndent, width - std::min(width, kDetailIndent),
                          device_details(status), kQuiet);
  drawing.layout.lines.push_back({drawing.row, device, std::nullopt});
  ++drawing.row;
}

void draw_device(TopDrawing& drawing, std::span<const PlacedColumn> columns, const TopRow& row,
                 std::uint32_t device) {
  if (row.status.is_up) {
    for (const auto& place : columns) {
      draw_field(drawing.canvas, drawing.row, place, place.column.cell(row, place.width));
    }
  } else {
    draw_down(drawing, columns, row);
  }
  const bool is_chosen = drawing.state.device == device;
  if (is_chosen) drawing.canvas.reverse(drawing.row, 0, drawing.canvas.width());
  drawing.layout.lines.push_back({drawing.row, device, std::nullopt});
  ++drawing.row;
  if (is_chosen && drawing.rows_left() > 0) draw_detail(drawing, row.status, device);
}

void draw_devices(TopDrawing& drawing, std::span<const TopColumn> table) {
  const auto& data = drawing.data;
  const auto shown = shown_devices(data.snapshot, drawing.state);
  std::vector<TopRow> rows;
  for (const auto device : shown) {
    rows.push_back(
        {data.snapshot.devices[device], data.trends[device], drawing.canvas.characters()});
  }
  const auto columns = place_columns(table, rows, drawing.canvas.width());
  draw_titles(drawing, columns);
  const auto room = drawing.rows_left();
  const auto kept = room > 2 * kProcessRowsLeast ? kProcessRowsLeast : 0;
  constexpr std::size_t kBesidePage = 2;  // which part of the list it is, and the chosen one's line
  auto page = shown.size();
  if (page + (drawing.state.device ? 1U : 0U) + kept > room) {
    page = room - std::min(room, kept + kBesidePage);
  }
  drawing.layout.page_size = std::max<std::size_t>(page, 1);
  const auto chosen =
      drawing.state.device
          ? std::find(shown.begin(), shown.end(), *drawing.state.device) - shown.begin()
          : std::ptrdiff_t{0};
  const auto first = first_of_page(static_cast<std::size_t>(chosen), shown.size(), page);
  const auto end = std::min(shown.size(), first + page);
  for (auto i = first; i < end; ++i) draw_device(drawing, columns, rows[i], shown[i]);
  if (page < shown.size()) {
    drawing.put_line(
        fmt::format("devices {} to {} of {}; PageDown goes on", first + 1, end, shown.size()),
        kQuiet);
  }
  if (shown.empty()) {
    drawing.put_line("no device has \"" + drawing.state.filter + "\" in its name", kQuiet);
  }
}

void draw_help(TopDrawing& drawing) {
  const auto width = drawing.canvas.width();
  for (const auto& line : help_lines()) {
    // A line that is too wide goes on below its explanation.
    const auto indent = std::min(line.find_first_not_of(' ', line.find(' ')), kDetailIndent);
    const auto text = display_width(line) <= width
                          ? line + "\n"
                          : wrapped(line, {.width = width, .indent = indent});
    for (std::size_t at = 0; at < text.size();) {
      const auto end = text.find('\n', at);
      drawing.put_line(std::string_view(text).substr(at, end - at));
      at = end + 1;
    }
  }
}

// On a screen that is too low or narrow half a table would only mislead.
void draw_too_small(Canvas& canvas) {
  const auto text =
      wrapped(fmt::format("too small: muster top needs {} x {}, this is {} x {}; q quits",
                          kWidthLeast, kHeightLeast, canvas.width(), canvas.height()),
              {.width = canvas.width()});
  std::size_t row = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    canvas.put_left(row++, 0, canvas.width(), std::string_view(text).substr(at, end - at),
                    kWarning);
    at = end + 1;
  }
}

}  // namespace

TopLayout draw_top(const TopData& data, const TopState& state, Canvas& canvas) {
  TopDrawing drawing{data, state, canvas};
  if (canvas.width() == 0 || canvas.height() == 0) return {};
  if (canvas.width() < kWidthLeast || canvas.height() < kHeightLeast) {
    draw_too_small(canvas);
    return {};
  }
  draw_header(drawing);
  switch (state.page) {
    case TopPage::Help:
      draw_help(drawing);
      break;
    case TopPage::Processes:
      draw_processes(drawing);
      break;
    case TopPage::Devices: {
      draw_notes(drawing);
      draw_devices(drawing, device_columns());
      const auto rows = divide_rows(drawing, shown_processes(data.snapshot, state).size());
      draw_cores(drawing, rows.cores);
      draw_plots(drawing, rows.plots);
      draw_processes(drawing);
      break;
    }
    case TopPage::Energy:
      draw_notes(drawing);
      draw_devices(drawing, energy_columns());
      draw_plots(drawing, divide_rows(drawing, 0).plots);
      break;
  }
  if (state.has_keys) draw_footer(drawing);
  return drawing.layout;
}

}  // namespace muster
