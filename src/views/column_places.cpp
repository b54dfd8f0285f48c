// Columns are placed in two passes. By rank, as many as fit with their least width are chosen;
// then from left to right each takes what is left up to its greatest width. A column of GPUs is
// left out on a machine that has none.

#include <algorithm>
#include <numeric>

#include "terminal/text_width.h"
#include "terminal/text_wrap.h"
#include "views/reading_text.h"
#include "views/top_columns.h"

namespace muster {
namespace {

// A model may be cut behind its first word, and needs no more than all of it.
void fit_name(std::span<const TopRow> rows, TopColumn& column) {
  constexpr std::size_t kMost = 24;
  column.width = column.width_max = 4;  // of the title
  for (const auto& row : rows) {
    const auto model = printable(name_cell(row, 0).text);
    const auto word_end = std::min(model.find(' '), model.size());
    const auto mark = word_end < model.size() ? 1U : 0U;
    const auto least = display_width(std::string_view(model).substr(0, word_end)) + mark;
    column.width = std::max(column.width, std::min(least, kMost));
    column.width_max = std::max(column.width_max, std::min(display_width(model), kMost));
  }
  column.width_max = std::max(column.width_max, column.width);
}

// What the names take of `width` columns, as they are cut between words.
std::size_t name_width(std::span<const TopRow> rows, std::size_t least, std::size_t width) {
  auto taken = least;
  for (const auto& row : rows) {
    const auto shown = fit_whole_words(printable(name_cell(row, width).text), width);
    taken = std::max(taken, display_width(shown));
  }
  return std::min(taken, width);
}

// The columns that the rows have anything for, as wide as they need.
std::vector<TopColumn> fitted_columns(std::span<const TopColumn> table,
                                      std::span<const TopRow> rows) {
  const bool has_gpu =
      std::any_of(rows.begin(), rows.end(), [](const TopRow& row) { return is_gpu(row.status); });
  std::vector<TopColumn> columns;
  for (auto column : table) {
    if (column.is_of_gpus && !has_gpu) continue;
    if (column.cell == name_cell) {
      fit_name(rows, column);
    } else if (column.width == column.width_max) {
      for (const auto& row : rows) {
        const auto needed = display_width(printable(column.cell(row, column.width).text));
        column.width = column.width_max = std::max(column.width, needed);
      }
    }
    columns.push_back(column);
  }
  return columns;
}

}  // namespace

std::vector<PlacedColumn> place_columns(std::span<const TopColumn> table,
                                        std::span<const TopRow> rows, std::size_t width) {
  const auto columns = fitted_columns(table, rows);
  std::vector<std::size_t> by_rank(columns.size());
  std::iota(by_rank.begin(), by_rank.end(), std::size_t{0});
  std::stable_sort(by_rank.begin(), by_rank.end(),
                   [&](std::size_t a, std::size_t b) { return columns[a].rank < columns[b].rank; });
  std::vector<bool> is_shown(columns.size(), false);
  std::size_t used = 0;
  for (const auto i : by_rank) {
    const auto with_gap = columns[i].width + (used == 0 ? 0 : 1);
    if (used + with_gap > width) break;
    is_shown[i] = true;
    used += with_gap;
  }
  std::vector<PlacedColumn> placed;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!is_shown[i]) continue;
    auto its = columns[i].width + std::min(columns[i].width_max - columns[i].width, width - used);
    if (columns[i].cell == name_cell) its = name_width(rows, columns[i].width, its);
    placed.push_back({columns[i], begin, its});
    used += its - columns[i].width;
    begin += its + 1;
  }
  return placed;
}

}  // namespace muster
