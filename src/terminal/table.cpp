#include "terminal/table.h"

#include <algorithm>

#include "base/check.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

constexpr std::size_t kGap = 2;          // spaces between columns
constexpr std::size_t kShrunkWidth = 8;  // narrower cells say nothing

void append_line(const std::vector<Column>& columns, const std::vector<std::size_t>& widths,
                 const std::vector<std::string>& cells, std::string& out) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto cell = fit_width(cells[i], widths[i]);
    const std::string padding(widths[i] - std::min(widths[i], display_width(cell)), ' ');
    if (i > 0) line.append(kGap, ' ');
    line += columns[i].align == Align::Right ? padding + cell : cell + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  MUSTER_CHECK(cells.size() == columns_.size());
  for (auto& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths(std::size_t width) const {
  std::vector<std::size_t> widths;
  for (const auto& column : columns_) widths.push_back(display_width(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  std::size_t total = columns_.empty() ? 0 : (columns_.size() - 1) * kGap;
  for (const auto one : widths) total += one;

  while (total > width) {
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto least = std::max(kShrunkWidth, display_width(columns_[i].title));
      const bool can_shrink = columns_[i].may_shrink && widths[i] > least;
      if (can_shrink && (widest == nullptr || widths[i] > *widest)) widest = &widths[i];
    }
    if (widest == nullptr) break;
    --*widest;
    --total;
  }
  return widths;
}

std::string Table::render(std::size_t width) const {
  const auto fitted = widths(width);
  std::vector<std::string> titles;
  for (const auto& column : columns_) titles.push_back(column.title);
  std::string out;
  const auto is_empty = [](const std::string& title) { return title.empty(); };
  if (!std::all_of(titles.begin(), titles.end(), is_empty)) {
    append_line(columns_, fitted, titles, out);
  }
  for (const auto& row : rows_) append_line(columns_, fitted, row, out);
  return out;
}

}  // namespace muster
