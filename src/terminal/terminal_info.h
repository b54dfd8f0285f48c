#pragma once

#include <cstddef>

namespace muster {

/// What is at the other end of a file descriptor.
struct TerminalInfo {
  bool is_terminal = false;
  std::size_t width = 80;  // columns, COLUMNS before the terminal's own; 80 where nothing tells
  std::size_t height = 24;
  bool has_color = false;  // false with NO_COLOR or TERM=dumb (no-color.org)
  bool has_utf8 = false;   // as LC_ALL, LC_CTYPE or LANG say, the first of them that is set
};

/// Threads: reads the environment, so not while another thread changes it.
TerminalInfo inspect_terminal(int fd);

/// Columns that a printed table may take: those of a terminal; without a bound where output goes to
/// a file or a program, which can cut for itself. Threads: as `inspect_terminal`.
std::size_t printed_width(int fd);

}  // namespace muster
