// A table that is too wide loses whole columns or moves them below their row before anything is
// cut: a column less is seen at once, half a number is not.
#include "terminal/table.h"

#include <algorithm>

#include "base/check.h"
#include "terminal/text_width.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

constexpr std::size_t kGap = 2;          // spaces between columns
constexpr std::size_t kRoomyWidth = 16;  // what a column that may shrink wants before others leave
constexpr std::size_t kBelowIndent = 4;  // of a line below its row

std::size_t total_width(const std::vector<bool>& is_shown, const std::vector<std::size_t>& widths) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (is_shown[i]) total += widths[i] + (total == 0 ? 0 : kGap);
  }
  return total;
}

}  // namespace

void Table::add_row(std::vector<TableCell> cells) {
  MUSTER_CHECK(cells.size() == columns_.size());
  for (auto& cell : cells) cell.text = printable(cell.text);
  rows_.push_back(std::move(cells));
}

std::size_t Table::natural_width(std::size_t column) const {
  auto width = display_width(columns_[column].title);
  for (const auto& row : rows_) width = std::max(width, display_width(row[column].text));
  return width;
}

// The first word of each cell, and the mark behind it.
std::size_t Table::least_width(std::size_t column) const {
  auto width = display_width(columns_[column].title);
  for (const auto& row : rows_) {
    const auto& text = row[column].text;
    const auto word_end = text.find(' ', text.find_first_not_of(' '));
    const auto mark = word_end == std::string::npos ? 0U : 1U;
    width = std::max(width, display_width(text.substr(0, word_end)) + mark);
  }
  return width;
}

std::size_t Table::cut_width(std::size_t column, std::size_t width) const {
  auto taken = display_width(columns_[column].title);
  for (const auto& row : rows_) {
    taken = std::max(taken, display_width(fit_whole_words(row[column].text, width)));
  }
  return taken;
}

Table::Layout Table::layout(std::size_t width) const {
  const auto count = columns_.size();
  Layout layout{std::vector<bool>(count, true), std::vector<std::size_t>(count)};
  std::vector<std::size_t> wanted(count);
  for (std::size_t i = 0; i < count; ++i) {
    layout.widths[i] = wanted[i] = natural_width(i);
    if (!columns_[i].may_shrink) continue;
    wanted[i] = std::min(wanted[i], std::max(least_width(i), kRoomyWidth));
  }
  while (total_width(layout.is_shown, wanted) > width) {
    std::size_t leaving = count;
    for (std::size_t i = 0; i < count; ++i) {
      if (!layout.is_shown[i] || columns_[i].leaves == 0) continue;
      if (leaving == count || columns_[i].leaves >= columns_[leaving].leaves) leaving = i;
    }
    if (leaving == count) break;
    layout.is_shown[leaving] = false;
  }
  // Asked for once: a text of a megabyte is a million columns too wide.
  std::vector<std::size_t> least(count);
  for (std::size_t i = 0; i < count; ++i) least[i] = least_width(i);
  while (total_width(layout.is_shown, layout.widths) > width) {
    std::size_t widest = count;
    for (std::size_t i = 0; i < count; ++i) {
      const bool can_shrink =
          layout.is_shown[i] && columns_[i].may_shrink && layout.widths[i] > least[i];
      if (can_shrink && (widest == count || layout.widths[i] > layout.widths[widest])) widest = i;
    }
    if (widest == count) break;
    --layout.widths[widest];
  }
  // What is cut between words rarely takes all of its place.
  for (std::size_t i = 0; i < count; ++i) {
    if (columns_[i].may_shrink) layout.widths[i] = cut_width(i, layout.widths[i]);
  }
  return layout;
}

void Table::append_line(const Layout& layout, const std::vector<TableCell>& cells, bool has_color,
                        std::string& out) const {
  std::size_t spaces = 0;  // not written before something follows: lines have none at their ends
  bool is_first = true;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!layout.is_shown[i]) continue;
    const auto text = fit_whole_words(cells[i].text, layout.widths[i]);
    const auto padding = layout.widths[i] - std::min(layout.widths[i], display_width(text));
    const bool is_right = columns_[i].align == Align::Right;
    spaces += (is_first ? 0 : kGap) + (is_right ? padding : 0);
    is_first = false;
    if (!text.empty()) {
      out.append(spaces, ' ');
      out += styled(text, cells[i].style, has_color);
      spaces = 0;
    }
    spaces += is_right ? 0 : padding;
  }
  out += '\n';
}

void Table::append_below(const Layout& layout, const std::vector<TableCell>& cells,
                         std::size_t width, bool has_color, std::string& out) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto& column = columns_[i];
    if (layout.is_shown[i] || !column.goes_below || cells[i].text.empty()) continue;
    const auto head = std::string(kBelowIndent, ' ') + column.title;
    const auto lines = wrapped(
        cells[i].text,
        {.width = width, .head = head + (column.title.empty() ? "" : " "), .indent = kBelowIndent});
    out += styled_start(lines, head.size(), column.title.empty() ? Style{} : kQuiet, has_color);
  }
}

std::string Table::render(std::size_t width, bool has_color) const {
  const auto chosen = layout(width);
  std::string out;
  const auto has_title = [](const Column& column) { return !column.title.empty(); };
  if (std::any_of(columns_.begin(), columns_.end(), has_title)) {
    std::vector<TableCell> titles;
    for (const auto& column : columns_) titles.emplace_back(column.title, kHeading);
    append_line(chosen, titles, has_color, out);
  }
  for (const auto& row : rows_) {
    append_line(chosen, row, has_color, out);
    append_below(chosen, row, width, has_color, out);
  }
  return out;
}

}  // namespace muster
