#pragma once

#include <cstddef>

#include "views/top_drawing.h"

namespace muster {

/// The rows between devices and processes, titles included; 0: no room, or nothing to show.
struct PanelRows {
  std::size_t cores = 0;
  std::size_t plots = 0;
};

/// Divides the rows that are left: the cores get at most a third of them on a machine without a
/// GPU and a fifth on others, the plots a third and what the processes leave over, the processes
/// the rest, at least a title and three.
///
/// process_count: how many there are to show.
PanelRows divide_rows(const TopDrawing& drawing, std::size_t process_count);

/// A bar for each core of the CPUs; where they are too many for that, a mark.
void draw_cores(TopDrawing& drawing, std::size_t rows);

/// The last seconds of load and memory, a column a second, the newest at the right: of the chosen
/// device, else of all GPUs together, else of all CPUs.
void draw_plots(TopDrawing& drawing, std::size_t rows);

}  // namespace muster
