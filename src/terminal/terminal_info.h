#pragma once

#include <cstddef>

namespace muster {

/// What is at the other end of a file descriptor.
struct TerminalInfo {
  bool is_terminal = false;
  std::size_t width = 80;  // columns; 80 where nothing tells
  std::size_t height = 24;
  bool has_color = false;  // false with NO_COLOR or TERM=dumb (no-color.org)
  bool has_utf8 = false;   // as LC_ALL, LC_CTYPE or LANG say, the first of them that is set
};

/// Threads: reads the environment, so not while another thread changes it.
TerminalInfo inspect_terminal(int fd);

}  // namespace muster
