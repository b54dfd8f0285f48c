// Columns are counted by ranges of Unicode, not by the locale: what is printed must not depend on
// whether a locale is installed.
#include "terminal/text_width.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

namespace muster {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Combining marks, joiners and variation selectors.
constexpr std::array kZeroWidth{
    Range{0x0300, 0x036F}, Range{0x0483, 0x0489},   Range{0x0591, 0x05BD},   Range{0x0610, 0x061A},
    Range{0x064B, 0x065F}, Range{0x0E31, 0x0E31},   Range{0x0E34, 0x0E3A},   Range{0x0E47, 0x0E4E},
    Range{0x1AB0, 0x1AFF}, Range{0x1DC0, 0x1DFF},   Range{0x200B, 0x200F},   Range{0x202A, 0x202E},
    Range{0x2060, 0x2064}, Range{0x20D0, 0x20FF},   Range{0xFE00, 0xFE0F},   Range{0xFE20, 0xFE2F},
    Range{0xFEFF, 0xFEFF}, Range{0x1F3FB, 0x1F3FF}, Range{0xE0100, 0xE01EF},
};

// Hangul, CJK, kana, full-width forms and emoji.
constexpr std::array kDoubleWidth{
    Range{0x1100, 0x115F},   Range{0x2E80, 0x303E},   Range{0x3041, 0x33FF},
    Range{0x3400, 0x4DBF},   Range{0x4E00, 0x9FFF},   Range{0xA000, 0xA4CF},
    Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE4F},
    Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},   Range{0x1F300, 0x1F64F},
    Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1F9FF}, Range{0x20000, 0x3FFFD},
};

template <typename Ranges>
bool is_in(const Ranges& ranges, char32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges), [code](const Range& range) {
    return code >= range.first && code <= range.last;
  });
}

struct Character {
  char32_t code = 0;
  std::size_t size = 1;  // bytes
  bool is_valid = false;
};

// The character at the beginning of a text that is not empty.
Character next_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return {};
  char32_t code = first & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  return {code, size, true};
}

bool is_control(char32_t code) {
  // Embeddings, overrides and isolates: they reorder what follows. Source: UAX #9, section 2.
  const bool is_bidirectional =
      (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || is_bidirectional;
}

std::size_t width_of(const Character& character) {
  if (!character.is_valid) return 1;
  if (is_in(kZeroWidth, character.code)) return 0;
  return is_in(kDoubleWidth, character.code) ? 2 : 1;
}

// `kept`: control characters that stay.
std::string without_controls(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto character = next_character(text);
    const auto bytes = text.substr(0, character.size);
    if (!character.is_valid) {
      result += '?';
    } else if (is_control(character.code) && kept.find(bytes) == std::string_view::npos) {
      result += ' ';
    } else {
      result += bytes;
    }
    text.remove_prefix(character.size);
  }
  return result;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const auto character = next_character(text);
    width += width_of(character);
    text.remove_prefix(character.size);
  }
  return width;
}

std::size_t first_character_size(std::string_view text) { return next_character(text).size; }

std::string printable(std::string_view text) { return without_controls(text, ""); }

std::string printable_lines(std::string_view text) { return without_controls(text, "\n\t"); }

std::string fit_width(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t used = 0;
  std::size_t size = 0;
  while (size < text.size()) {
    const auto character = next_character(text.substr(size));
    if (used + width_of(character) > width - 1) break;  // one column is for the mark
    used += width_of(character);
    size += character.size;
  }
  return std::string(text.substr(0, size)) + "…";
}

}  // namespace muster
