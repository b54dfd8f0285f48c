#include "terminal/terminal_info.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace muster {
namespace {

// Source: POSIX.1-2017, 8.2: the first that is set and not empty counts.
bool names_utf8() {
  for (const auto* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    std::string locale(value);
    std::transform(locale.begin(), locale.end(), locale.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

// Source: POSIX.1-2017, 8.3, COLUMNS: the preferred width, where it is a number above 0.
std::optional<std::size_t> given_columns() {
  const char* text = std::getenv("COLUMNS");
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  std::size_t columns = 0;
  const auto [end, fault] = std::from_chars(digits.begin(), digits.end(), columns);
  if (fault != std::errc{} || end != digits.end() || columns == 0) return std::nullopt;
  return columns;
}

}  // namespace

TerminalInfo inspect_terminal(int fd) {
  TerminalInfo info;
  info.is_terminal = isatty(fd) == 1;
  winsize size{};
  if (info.is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    info.width = size.ws_col;
    if (size.ws_row > 0) info.height = size.ws_row;
  }
  if (const auto columns = given_columns(); info.is_terminal && columns) info.width = *columns;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool is_dumb = term == nullptr || std::string_view(term) == "dumb";
  const bool is_refused = no_color != nullptr && *no_color != '\0';
  info.has_color = info.is_terminal && !is_dumb && !is_refused;
  info.has_utf8 = names_utf8();
  return info;
}

std::size_t printed_width(int fd) {
  const auto info = inspect_terminal(fd);
  return info.is_terminal ? info.width : std::numeric_limits<std::size_t>::max();
}

}  // namespace muster
