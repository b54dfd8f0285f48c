#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "terminal/canvas.h"
#include "views/top_data.h"
#include "views/top_state.h"

namespace muster {

inline constexpr Style kTopTitle = kQuiet;  // of columns and panels

/// A screen of `muster top` while it is drawn from top to bottom.
struct TopDrawing {
  static constexpr std::size_t kFooterRows = 1;

  const TopData& data;
  const TopState& state;
  Canvas& canvas;
  TopLayout layout = {};
  std::size_t row = 0;  // the next one that is free

  std::size_t body_end() const {
    const auto kept = state.has_keys && canvas.height() > kFooterRows ? kFooterRows : 0;
    return canvas.height() - kept;
  }
  std::size_t rows_left() const { return body_end() > row ? body_end() - row : 0; }

  /// A line over the whole width, cut between words.
  void put_line(std::string_view text, Style style = {}) {
    if (rows_left() > 0) canvas.put_left(row++, 0, canvas.width(), text, style);
  }
};

/// Where the page of a list begins that holds what is chosen; 0 where nothing of it is.
inline std::size_t first_of_page(std::size_t chosen, std::size_t count, std::size_t page_size) {
  if (chosen >= count || page_size == 0) return 0;
  return chosen / page_size * page_size;
}

}  // namespace muster
