#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "terminal/style.h"

namespace muster {

/// A screen of cells that views draw on, whatever shows it: a string, a terminal, a test.
///
/// Not thread-safe; owned by one loop.
class Canvas {
 public:
  struct Cell {
    std::string text = " ";  // a character with its combining marks; empty: the right half of one
    Style style;

    bool operator==(const Cell&) const = default;
  };

  Canvas(std::size_t width, std::size_t height, CharacterSet characters);

  std::size_t width() const { return width_; }
  std::size_t height() const { return height_; }
  CharacterSet characters() const { return characters_; }
  const Cell& cell(std::size_t row, std::size_t column) const {
    return cells_[row * width_ + column];
  }

  /// Writes a text, made `printable`, from a cell on; what does not fit is cut off. In ASCII "…"
  /// becomes "~" and any other character "?". Returns the columns that it took.
  std::size_t put(std::size_t row, std::size_t column, std::string_view text, Style style = {});

  /// The same in a field of `width` columns: what does not fit is cut between words, with "…".
  void put_left(std::size_t row, std::size_t column, std::size_t width, std::string_view text,
                Style style = {});
  void put_right(std::size_t row, std::size_t column, std::size_t width, std::string_view text,
                 Style style = {});

  /// Shows cells of a row reversed: what is selected.
  void reverse(std::size_t row, std::size_t column, std::size_t width);

  /// The characters alone, a line a row, without spaces at the ends and empty lines at the bottom.
  std::string text() const;

  /// The same with the styles as escape sequences, where the terminal has colours.
  /// Source: ECMA-48, select graphic rendition; 38;5;N is xterm's.
  std::string ansi() const;

 private:
  std::size_t put_character(std::size_t row, std::size_t column, std::string_view character,
                            std::size_t columns, Style style);
  std::size_t used_columns(std::size_t row) const;
  std::size_t used_rows() const;

  const std::size_t width_;
  const std::size_t height_;
  const CharacterSet characters_;
  std::vector<Cell> cells_;
};

}  // namespace muster
