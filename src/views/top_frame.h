#pragma once

#include "views/top_drawing.h"

namespace muster {

/// The lines above all pages: machine, totals, clock; facts, and whether it stands still.
void draw_header(TopDrawing& drawing);

/// The last line: a question, what is typed, a notice, or which keys there are.
void draw_footer(const TopDrawing& drawing);

}  // namespace muster
