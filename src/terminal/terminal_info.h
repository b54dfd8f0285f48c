#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "terminal/style.h"

namespace muster {

/// The width of what is no terminal: nothing is cut or wrapped for a file or a program.
inline constexpr std::size_t kUnboundedWidth = std::numeric_limits<std::size_t>::max();

/// When output has colours; Auto: as the environment and the terminal say.
enum class ColorChoice : std::uint8_t { Auto, Always, Never };

/// The inverse of "auto", "always", "never"; nullopt for any other word.
std::optional<ColorChoice> parse_color_choice(std::string_view word);

/// What is at the other end of a file descriptor.
struct TerminalInfo {
  bool is_terminal = false;
  bool can_redraw = false;  // a terminal that can move its cursor: TERM is set and not "dumb"
  /// Columns: COLUMNS where it is a number above 0, also for what is no terminal; else the
  /// terminal's own, 80 where it does not say; else kUnboundedWidth.
  std::size_t width = 80;
  std::size_t height = 24;
  bool has_color = false;
  bool has_utf8 = false;  // as LC_ALL, LC_CTYPE or LANG say, the first of them that is set

  CharacterSet characters() const { return has_utf8 ? CharacterSet::Utf8 : CharacterSet::Ascii; }
};

/// Colours with ColorChoice::Auto: none with NO_COLOR; else some with CLICOLOR_FORCE; else none
/// with CLICOLOR=0; else on a terminal that `can_redraw`.
///
/// Source: no-color.org; bixense.com/clicolors; POSIX.1-2017, 8.3 (COLUMNS).
/// Threads: reads the environment, so not while another thread changes it.
TerminalInfo inspect_terminal(int fd, ColorChoice color = ColorChoice::Auto);

}  // namespace muster
