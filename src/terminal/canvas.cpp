// A screen is drawn into cells first, so that what shows it can send only what changed, and a test
// can read it.
#include "terminal/canvas.h"

#include <algorithm>

#include "terminal/text_width.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

std::string ascii_character(std::string_view character) {
  if (character.size() == 1) return std::string(character);
  return character == "…" ? "~" : "?";
}

}  // namespace

Canvas::Canvas(std::size_t width, std::size_t height, CharacterSet characters)
    : width_(width), height_(height), characters_(characters), cells_(width * height) {}

std::size_t Canvas::put(std::size_t row, std::size_t column, std::string_view text, Style style) {
  if (row >= height_) return 0;
  const auto clean = printable(text);
  std::string_view rest = clean;
  auto at = column;
  while (!rest.empty()) {
    const auto size = first_character_size(rest);
    const auto character = rest.substr(0, size);
    rest.remove_prefix(size);
    const auto columns = display_width(character);
    if (at + columns > width_) break;
    at += put_character(row, at, character, columns, style);
  }
  return at - std::min(at, column);
}

std::size_t Canvas::put_character(std::size_t row, std::size_t column, std::string_view character,
                                  std::size_t columns, Style style) {
  auto* line = &cells_[row * width_];
  if (columns == 0) {  // a mark that goes onto the character before it
    if (characters_ == CharacterSet::Ascii || column == 0) return 0;
    const bool is_wide = line[column - 1].text.empty() && column > 1;
    line[column - (is_wide ? 2 : 1)].text += character;
    return 0;
  }
  if (characters_ == CharacterSet::Ascii) {
    for (std::size_t i = 0; i < columns; ++i)
      line[column + i] = {ascii_character(character), style};
    return columns;
  }
  line[column] = {std::string(character), style};
  if (columns == 2) line[column + 1] = {"", style};
  return columns;
}

void Canvas::put_left(std::size_t row, std::size_t column, std::size_t width, std::string_view text,
                      Style style) {
  put(row, column, fit_whole_words(printable(text), width), style);
}

void Canvas::put_right(std::size_t row, std::size_t column, std::size_t width,
                       std::string_view text, Style style) {
  const auto fitted = fit_whole_words(printable(text), width);
  put(row, column + width - std::min(width, display_width(fitted)), fitted, style);
}

void Canvas::reverse(std::size_t row, std::size_t column, std::size_t width) {
  if (row >= height_) return;
  for (auto i = column; i < std::min(column + width, width_); ++i) {
    cells_[row * width_ + i].style.is_reversed = true;
  }
}

std::size_t Canvas::used_columns(std::size_t row) const {
  auto used = width_;
  while (used > 0 && cell(row, used - 1) == Cell{}) --used;
  return used;
}

std::size_t Canvas::used_rows() const {
  auto used = height_;
  while (used > 0 && used_columns(used - 1) == 0) --used;
  return used;
}

std::string Canvas::text() const {
  std::string out;
  for (std::size_t row = 0; row < used_rows(); ++row) {
    const auto begin = out.size();
    for (std::size_t column = 0; column < width_; ++column) out += cell(row, column).text;
    const auto last = out.find_last_not_of(' ');
    out.resize(last == std::string::npos || last < begin ? begin : last + 1);
    out += '\n';
  }
  return out;
}

std::string Canvas::ansi() const {
  std::string out;
  for (std::size_t row = 0; row < used_rows(); ++row) {
    Style now;
    for (std::size_t column = 0; column < used_columns(row); ++column) {
      const auto& one = cell(row, column);
      if (one.style != now)
        out += one.style == Style{} ? std::string(kStyleEnd) : style_start(one.style);
      now = one.style;
      out += one.text;
    }
    if (now != Style{}) out += kStyleEnd;
    out += '\n';
  }
  return out;
}

}  // namespace muster
