#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "terminal/style.h"

namespace muster {

enum class Align : unsigned char { Left, Right };

/// A column of a Table, and what becomes of it where the table is too wide.
struct Column {
  std::string title;  // empty in all columns: no header line
  Align align = Align::Left;
  bool may_shrink = false;  // cut between words, with "…"
  /// 0: the column stays. Else it leaves, the highest number first; among equals from the right.
  std::uint8_t leaves = 0;
  /// It does not vanish when it leaves: "title value" stands on a line of its own below the row.
  bool goes_below = false;
};

struct TableCell {
  // NOLINTBEGIN(google-explicit-constructor): a cell is a text, most often
  TableCell(std::string text_given, Style style_given = {})
      : text(std::move(text_given)), style(style_given) {}
  TableCell(const char* text_given) : text(text_given) {}
  // NOLINTEND(google-explicit-constructor)

  std::string text;
  Style style = {};
};

/// Rows of text in aligned columns, two spaces apart.
///
/// Threads: not thread-safe.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// cells: as many as there are columns. They are made `printable`.
  void add_row(std::vector<TableCell> cells);

  /// The lines, each ending in "\n" and without spaces at its end. Where a line would be wider than
  /// `width`, columns leave until the others have room; then those that may shrink are cut, the
  /// widest first. No word is broken, so what cannot be made narrower stays too wide.
  std::string render(std::size_t width, bool has_color = false) const;

 private:
  struct Layout {
    std::vector<bool> is_shown;
    std::vector<std::size_t> widths;
  };
  std::size_t natural_width(std::size_t column) const;
  std::size_t least_width(std::size_t column) const;
  std::size_t cut_width(std::size_t column, std::size_t width) const;
  Layout layout(std::size_t width) const;
  void append_line(const Layout& layout, const std::vector<TableCell>& cells, bool has_color,
                   std::string& out) const;
  void append_below(const Layout& layout, const std::vector<TableCell>& cells, std::size_t width,
                    bool has_color, std::string& out) const;

  std::vector<Column> columns_;
  std::vector<std::vector<TableCell>> rows_;
};

}  // namespace muster
