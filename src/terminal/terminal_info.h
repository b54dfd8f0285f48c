#pragma once

#include <cstddef>

namespace muster {

/// What is at the other end of a file descriptor.
struct TerminalInfo {
  bool is_terminal = false;
  std::size_t width = 80;  // columns; 80 where nothing tells
  bool has_color = false;  // false with NO_COLOR or TERM=dumb (no-color.org)
};

/// Threads: reads the environment, so not while another thread changes it.
TerminalInfo inspect_terminal(int fd);

}  // namespace muster
