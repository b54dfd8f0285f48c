#include "terminal/terminal_info.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace muster {

TerminalInfo inspect_terminal(int fd) {
  TerminalInfo info;
  info.is_terminal = isatty(fd) == 1;
  winsize size{};
  if (info.is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    info.width = size.ws_col;
  }
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool is_dumb = term == nullptr || std::string_view(term) == "dumb";
  const bool is_refused = no_color != nullptr && *no_color != '\0';
  info.has_color = info.is_terminal && !is_dumb && !is_refused;
  return info;
}

}  // namespace muster
