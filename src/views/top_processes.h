#pragma once

#include "views/top_drawing.h"

namespace muster {

/// The processes as a table, on the rows that are left: what each takes of CPU time, memory and
/// GPU memory, on which device it works, and of a worker of muster which models it has loaded.
/// Columns that nothing is known for are left out, and on a narrow screen those that matter least,
/// so that commands can be read.
void draw_processes(TopDrawing& drawing);

}  // namespace muster
