// One palette for all that is printed and drawn: views name what a text is for, this file alone
// knows which colour that is.
#include "terminal/style.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

RoleColor color_of(Role role) {
  switch (role) {
    case Role::Text:
      return {-1, -1};
    case Role::Quiet:
      return {245, -1};  // grey
    case Role::Heading:
    case Role::Accent:
      return {74, 6};  // sky blue; cyan
    case Role::Good:
      return {36, 2};  // bluish green; green
    case Role::Warning:
      return {214, 3};  // orange; yellow
    case Role::Bad:
      return {202, 1};  // vermilion; red
  }
  return {};
}

std::string style_start(const Style& style) {
  std::string codes = "0";
  if (style.is_bold) codes += ";1";
  if (style.is_reversed) codes += ";7";
  const auto color = color_of(style.role).of_256;
  if (color >= 0) codes += fmt::format(";38;5;{}", color);
  return "\x1b[" + codes + "m";
}

std::string styled(std::string_view text, const Style& style, bool has_color) {
  if (!has_color || text.empty() || style == Style{}) return std::string(text);
  return fmt::format("{}{}{}", style_start(style), text, kStyleEnd);
}

std::string styled_start(std::string_view text, std::size_t size, const Style& style,
                         bool has_color) {
  const auto end = std::min(size, text.size());
  return styled(text.substr(0, end), style, has_color) + std::string(text.substr(end));
}

}  // namespace muster
