// What may be written where: one look at a descriptor and the environment, so that every command
// wraps, colours and redraws by the same rules.
#include "terminal/terminal_info.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace muster {
namespace {

std::string_view value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Source: POSIX.1-2017, 8.2: the first that is set and not empty counts.
bool names_utf8() {
  for (const auto* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string locale(value_of(variable));
    if (locale.empty()) continue;
    std::transform(locale.begin(), locale.end(), locale.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

// Source: POSIX.1-2017, 8.3, COLUMNS: the preferred width, where it is a number above 0.
std::optional<std::size_t> given_columns() {
  const auto digits = value_of("COLUMNS");
  std::size_t columns = 0;
  const auto [end, fault] = std::from_chars(digits.begin(), digits.end(), columns);
  if (fault != std::errc{} || end != digits.end() || columns == 0) return std::nullopt;
  return columns;
}

// Source: no-color.org (set and not empty); bixense.com/clicolors (CLICOLOR_FORCE set and not 0
// colours even what is no terminal, CLICOLOR=0 colours nothing). Where both NO_COLOR and
// CLICOLOR_FORCE are set, the one who wants no colour is heard.
bool has_color(ColorChoice choice, bool can_redraw) {
  if (choice != ColorChoice::Auto) return choice == ColorChoice::Always;
  if (!value_of("NO_COLOR").empty()) return false;
  const auto forced = value_of("CLICOLOR_FORCE");
  if (!forced.empty() && forced != "0") return true;
  return can_redraw && value_of("CLICOLOR") != "0";
}

}  // namespace

std::optional<ColorChoice> parse_color_choice(std::string_view word) {
  if (word == "auto") return ColorChoice::Auto;
  if (word == "always") return ColorChoice::Always;
  if (word == "never") return ColorChoice::Never;
  return std::nullopt;
}

TerminalInfo inspect_terminal(int fd, ColorChoice color) {
  TerminalInfo info;
  info.is_terminal = isatty(fd) == 1;
  const auto term = value_of("TERM");
  info.can_redraw = info.is_terminal && !term.empty() && term != "dumb";
  winsize size{};
  if (!info.is_terminal) {
    info.width = kUnboundedWidth;
  } else if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    info.width = size.ws_col;
    if (size.ws_row > 0) info.height = size.ws_row;
  }
  if (const auto columns = given_columns()) info.width = *columns;
  info.has_color = has_color(color, info.can_redraw);
  info.has_utf8 = names_utf8();
  return info;
}

}  // namespace muster
