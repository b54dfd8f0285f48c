#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "cli/top_source.h"
#include "terminal/curses_screen.h"

namespace muster {

/// Shows the frames of `source` and takes keys until somebody quits or a signal asks for the end. A
/// key is answered at once from the frame that is there.
///
/// Errors: those of the source.
Status show_top(CursesScreen& screen, TopSource& source, const Clock& clock);

}  // namespace muster
