#pragma once

#include "terminal/canvas.h"
#include "views/top_data.h"
#include "views/top_state.h"

namespace muster {

/// Draws what `muster top` shows onto an empty canvas, whatever its size: what is wrong first, then
/// a line or two for each device, then processes. Returns where things stand, for the mouse.
///
/// Threads: pure.
TopLayout draw_top(const TopData& data, const TopState& state, Canvas& canvas);

}  // namespace muster
