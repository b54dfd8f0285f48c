#pragma once

#include "views/top_drawing.h"

namespace muster {

/// The processes as a table, on the rows that are left: what each takes of CPU time, memory and
/// GPU memory, on which device it works, and of a worker of muster which models it has loaded.
/// Columns that nothing is known for are left out, so are kinds on a narrow screen.
void draw_processes(TopDrawing& drawing);

}  // namespace muster
