#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

/// Which characters a screen can show.
enum class CharacterSet : std::uint8_t { Utf8, Ascii };

/// What a text is for; the colour follows from it (`color_of`). A colour never says anything that
/// no letter or number says too.
enum class Role : std::uint8_t { Text, Quiet, Heading, Accent, Good, Warning, Bad };
inline constexpr std::size_t kRoleCount = 7;

struct Style {
  Role role = Role::Text;
  bool is_bold = false;
  bool is_reversed = false;

  bool operator==(const Style&) const = default;
};

inline constexpr Style kHeading{.role = Role::Heading, .is_bold = true};
inline constexpr Style kQuiet{.role = Role::Quiet};
inline constexpr Style kGood{.role = Role::Good, .is_bold = true};
inline constexpr Style kWarning{.role = Role::Warning, .is_bold = true};
inline constexpr Style kBad{.role = Role::Bad, .is_bold = true};

/// The number of a role's colour among a terminal's 256, and among its first eight; -1: the
/// terminal's own.
///
/// Source: Okabe and Ito 2008, "Color Universal Design": sky blue, orange, vermilion and bluish
/// green are told apart by people with any of the usual colour-vision deficiencies; here the
/// nearest of xterm's palette.
struct RoleColor {
  int of_256 = -1;
  int of_8 = -1;
};
RoleColor color_of(Role role);

/// The escape sequence that begins a style, whatever was in force before.
/// Source: ECMA-48, select graphic rendition; 38;5;N is xterm's.
std::string style_start(const Style& style);
inline constexpr std::string_view kStyleEnd = "\x1b[0m";

/// `text` in a style, as escape sequences; as it is without colours, or where nothing sets it off.
std::string styled(std::string_view text, const Style& style, bool has_color = true);

/// The same for the first `size` bytes of a text: what is laid out first is coloured afterwards.
std::string styled_start(std::string_view text, std::size_t size, const Style& style,
                         bool has_color);

}  // namespace muster
