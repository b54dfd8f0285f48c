#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace muster {

enum class Align : unsigned char { Left, Right };

/// A column of a Table.
struct Column {
  std::string title;  // empty in all columns: no header line
  Align align = Align::Left;
  bool may_shrink = false;  // cut with "…" where the table is too wide
};

/// Rows of text in aligned columns, two spaces apart.
///
/// Threads: not thread-safe.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// cells: as many as there are columns. They are made `printable`.
  void add_row(std::vector<std::string> cells);

  /// The lines, each ending in "\n" and without spaces at its end. Columns that may shrink are cut,
  /// the widest first, until a line fits into `width` columns or each has come to its title or
  /// eight columns.
  std::string render(std::size_t width) const;

 private:
  std::vector<std::size_t> widths(std::size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace muster
