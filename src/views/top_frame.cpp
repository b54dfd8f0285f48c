// The first and the last lines of a screen, the same on every page. Pieces that do not fit whole
// are left out.

#include "views/top_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "terminal/text_width.h"
#include "terminal/text_wrap.h"
#include "views/top_notes.h"

namespace muster {
namespace {

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

}  // namespace

void draw_header(TopDrawing& drawing) {
  auto& canvas = drawing.canvas;
  const auto& data = drawing.data;
  const auto width = canvas.width();
  const auto clock_width = std::min(width, display_width(data.clock));
  canvas.put_right(0, width - clock_width, clock_width, data.clock, kQuiet);
  const auto end = width - clock_width - (clock_width > 0 ? 1 : 0);
  const auto name = fit_width("muster top  " + printable(data.snapshot.machine), end);
  const auto column = canvas.put(0, 0, name, kHeading) + 2;
  put_pieces(canvas, 0, column, end, machine_totals(data.snapshot, data.trends), {.is_bold = true});

  const auto facts = machine_facts(data);
  std::string mode;
  if (data.replay) mode = replay_text(*data.replay);
  if (drawing.state.is_paused) mode = "PAUSED";
  const auto mode_width = std::min(width, display_width(mode));
  canvas.put_right(1, width - mode_width, mode_width, mode, kWarning);
  const auto facts_end = width - std::min(width, mode_width + (mode_width > 0 ? 1 : 0));
  put_pieces(canvas, 1, 0, facts_end, facts, kQuiet);
  drawing.row = facts.empty() && mode.empty() ? 1 : 2;
}

void draw_footer(const TopDrawing& drawing) {
  auto& canvas = drawing.canvas;
  const auto& state = drawing.state;
  const auto row = canvas.height() - 1;
  const auto width = canvas.width();
  if (state.question) {
    canvas.put_left(row, 0, width,
                    fmt::format("{} {}: y sends SIGTERM, 9 sends SIGKILL, any other key nothing",
                                state.question->pid, state.question->command),
                    kWarning);
    return;
  }
  if (state.is_typing_filter) {
    canvas.put_left(row, 0, width, "filter: " + state.filter + "_  Enter keeps it, Esc clears it",
                    {.is_bold = true});
    return;
  }
  if (!state.notice.empty()) {
    canvas.put_left(row, 0, width, state.notice, kWarning);
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
  put_pieces(canvas, row, 0, width, keys, kQuiet);
}

}  // namespace muster
